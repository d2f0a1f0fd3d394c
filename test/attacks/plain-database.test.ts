import { describe, expect, inject, it } from "vitest";
import { diagnose } from "../../src/cli/commands/doctor.ts";
import type { Store, StoreSettings } from "../../src/store/contract/store.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { transportOf, warnOfTransport } from "../../src/store/postgres/transport.ts";
import { sceneOn } from "../store/postgres/scene.ts";

type LogFields = Readonly<Record<string, unknown>>;
const lines: [level: string, event: string, fields: LogFields | undefined][] = [];
const log = (level: string, event: string, fields?: LogFields): void => void lines.push([level, event, fields]);
const logged = (): typeof lines => lines.splice(0);

const over = (stream: object) => transportOf({ connection: { stream } });

/** The password and all payloads on a shared network. */
describe("a database on another machine", () => {
  it("is classified by its connection, not by its name", () => {
    expect(over({ remoteAddress: "10.0.3.4" })).toBe("plain");
    expect(over({ remoteAddress: "127.0.0.1" })).toBe("local");
    expect(over({ remoteAddress: "::1" })).toBe("local");
    expect(over({})).toBe("local"); // a Unix socket
    expect(over({ remoteAddress: "10.0.3.4", encrypted: true, authorized: true })).toBe("tls");
    expect(over({ remoteAddress: "10.0.3.4", encrypted: true, authorized: false })).toBe("tls, not verified");
  });

  it("without TLS logs a warning with code and next action, without the password", () => {
    warnOfTransport("plain", "postgres://tape:s3cret@db.example/tape", log);
    const [[level, event, fields] = []] = logged();
    expect([level, event, fields?.code]).toEqual(["warn", "store.plain", "TAPE_STORE_PLAIN"]);
    expect(fields?.error).toContain("db.example is not encrypted");
    expect(fields?.next).toContain("sslmode=verify-full");
    expect(JSON.stringify(fields)).not.toContain("s3cret");
    warnOfTransport("tls, not verified", "postgres://db.example/tape", log);
    expect(logged()[0]?.[2]?.error).toContain("certificate was not checked");
  });

  it("logs no warning if the URL accepts it or the connection is safe", () => {
    warnOfTransport("plain", "postgres://db.example/tape?sslmode=disable", log);
    warnOfTransport("tls, not verified", "postgres://db.example/tape?sslmode=no-verify", log);
    warnOfTransport("tls", "postgres://db.example/tape", log);
    warnOfTransport("local", "postgres://127.0.0.1/tape", log);
    expect(logged()).toEqual([]);
  });

  it("is reported by doctor; a local one is fine and logs nothing", async () => {
    const scene = await sceneOn(inject("postgres18"));
    const here = await openPostgres({ url: scene.url, log });
    await here.close();
    expect(logged().filter(([, event]) => event === "store.plain")).toEqual([]);
    const about = async (transport?: string) => {
      const settings = async (): Promise<StoreSettings> => {
        const found = await scene.store.read.settings();
        return transport === undefined ? found : { ...found, facts: { ...found.facts, transport } };
      };
      const store: Store = { ...scene.store, read: { ...scene.store.read, settings } };
      return (await diagnose(store, "acme", scene.url)).find((finding) => finding.check === "connection");
    };
    expect(await about()).toMatchObject({
      state: "ok",
      message: expect.stringContaining("stays on this machine") as string,
    });
    const next = expect.stringContaining("TAPE_STORE_PLAIN") as string;
    expect(await about("plain")).toMatchObject({ state: "warn", next });
    expect(await about("tls, not verified")).toMatchObject({ state: "warn", next });
    await scene.close();
  });
});
