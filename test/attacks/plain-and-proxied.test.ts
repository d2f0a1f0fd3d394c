import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { get as getTls, type RequestOptions } from "node:https";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { watchCertificate } from "../../src/cli/commands/serve.ts";
import { type RunningServer, type ServeOptions, serve } from "../../src/host/serve.ts";
import { certificate, privateKey } from "../connector/certificate.ts";
import { nextCertificate, nextKey } from "../server/certificates.ts";
import { ask, type Stage, stage } from "../server/stage.ts";

const cleanup: (() => unknown)[] = [];
afterEach(async () => {
  for (const work of cleanup.splice(0).reverse()) await work();
});

async function serving(options: Partial<ServeOptions>): Promise<RunningServer> {
  const one = await serve({ store: "memory:", port: 0, ...options });
  cleanup.push(() => one.stop(0));
  return one;
}

async function staged(options: Parameters<typeof stage>[0]): Promise<Stage["server"]> {
  const one = await stage(options);
  cleanup.push(() => one.close());
  return one.server;
}

const bootstrapToken = `root.${"s".repeat(43)}`;
const tls = { cert: certificate, key: privateKey };
const get = async (port: number, options: RequestOptions = {}): Promise<IncomingMessage> => {
  const trust = { ca: certificate, servername: "bank.test", headers: { host: "localhost" } };
  const sent = getTls({ port, host: "127.0.0.1", path: "/livez", agent: false, ...trust, ...options });
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return response.resume();
};

describe("tokens in clear text", () => {
  it("does not listen on a public address without TLS unless plain is accepted", async () => {
    const exposed = { host: "0.0.0.0", credentials: "required" as const, bootstrapToken };
    await expect(serving(exposed)).rejects.toMatchObject({ code: "TAPE_SERVER_EXPOSED" });
    await expect(serving({ ...exposed, host: "::" })).rejects.toThrow(/unencrypted/);
    expect((await serving({ ...exposed, plain: "accepted" })).url).toMatch(/^http:/);
    expect((await serving({ ...exposed, tls })).url).toMatch(/^https:/);
    expect((await serving({ ...exposed, host: "127.0.0.1" })).url).toMatch(/^http:/);
  });

  it("sends HSTS over TLS, and forbids use by other origins", async () => {
    const { port } = await serving({ tls });
    expect((await get(port)).headers).toMatchObject({
      "strict-transport-security": expect.stringMatching(/^max-age=\d{8}/) as string,
      "cross-origin-resource-policy": "same-origin",
    });
    const plain = await serving({});
    const page = await fetch(plain.url);
    expect(page.headers.get("strict-transport-security")).toBeNull();
    expect(page.headers.get("cross-origin-opener-policy")).toBe("same-origin");
  });

  it("closes a connection whose handshake never completes", async () => {
    const { port } = await serving({ tls, timeouts: { headersMs: 50 } });
    const { connect } = await import("node:net");
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    await once(socket.resume(), "close");
  });

  it("with a client CA, other callers get no connection", async () => {
    const { port } = await serving({ tls: { ...tls, clientCa: nextCertificate } });
    await expect(get(port)).rejects.toThrow();
    const known = await get(port, { cert: nextCertificate, key: nextKey });
    expect(known.statusCode).toBe(200);
  });

  it("uses a renewed certificate without a restart, and ignores an unusable one", async () => {
    let files = { cert: certificate, key: privateKey };
    const one = await serving({ tls });
    const events: string[] = [];
    cleanup.push(
      watchCertificate(
        () => files,
        one,
        (_level, event) => events.push(event),
      ),
    );
    const presented = async (): Promise<string> => {
      const socket: TLSSocket = connectTls({ port: one.port, host: "127.0.0.1", rejectUnauthorized: false });
      await once(socket, "secureConnect");
      const { subject } = socket.getPeerCertificate();
      socket.destroy();
      return String(subject.CN);
    };
    expect(await presented()).toBe("bank.test");
    files = { cert: nextCertificate, key: "half" };
    process.emit("SIGHUP");
    expect(await presented()).toBe("bank.test");
    files = { cert: nextCertificate, key: nextKey };
    process.emit("SIGHUP");
    expect(await presented()).toBe("next.test");
    expect(events).toEqual(["server.certificate_unusable", "server.certificate_renewed"]);
  });
});

describe("through a proxy", () => {
  const call = async (server: Stage["server"], url: string, headers: Record<string, string>) =>
    (await ask(server.exchange, "GET", url, { headers })).status;

  it.each(["forwarded", "via", "x-forwarded-for", "x-forwarded-proto", "x-real-ip"])(
    "without credentials a call with %s is refused",
    async (header) => {
      const server = await staged({});
      const host = "127.0.0.1:7878";
      expect(await call(server, "/v1/whoami", { host })).toBe(200);
      expect(await call(server, "/v1/whoami", { host, [header]: "203.0.113.7" })).toBe(403);
    },
  );

  it("a page of the public origin may call, another origin may not", async () => {
    const server = await staged({ origin: "https://tape.example" });
    const host = "127.0.0.1:7878";
    expect(await call(server, "/v1/whoami", { host, origin: "https://tape.example" })).toBe(200);
    expect(await call(server, "/v1/whoami", { host, origin: "https://evil.example" })).toBe(403);
    expect(await call(await staged({}), "/v1/whoami", { host, origin: "https://tape.example" })).toBe(403);
  });

  it("a link from another site opens the page but makes no call", async () => {
    const server = await staged({});
    const link = { host: "localhost", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    expect(await call(server, "/", { ...link, "sec-fetch-dest": "document" })).toBe(200);
    expect(await call(server, "/", { ...link, "sec-fetch-dest": "iframe" })).toBe(403);
    expect(await call(server, "/v1/runs", { ...link, "sec-fetch-dest": "document" })).toBe(403);
    expect(await call(server, "/", { ...link, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script" })).toBe(403);
  });
});
