import { describe, expect, it } from "vitest";
import { limitsOf } from "../../src/cli/commands/serve.ts";
import { describeConfig } from "../../src/config/describe.ts";
import { loadConfig } from "../../src/config/load.ts";
import { defaultServerLimits } from "../../src/server/limits.ts";
import { defaultTimeouts } from "../../src/server/listen.ts";

const load = (env: Readonly<Record<string, string>> = {}) => loadConfig({ cwd: "/nowhere", env });

describe("tape.server", () => {
  it("has the server's own defaults", () => {
    const { server } = load().settings.tape;
    expect(limitsOf(server)).toEqual(defaultServerLimits);
    expect(defaultTimeouts.idleMs).toBe(server.idle_s * 1_000);
  });

  it("is closed by default", () => {
    expect(load().settings.tape.server).toMatchObject({ listen: "127.0.0.1:7878", credentials: "none" });
  });

  it("refuses a certificate without its key, and a key without its certificate", () => {
    expect(() => load({ TAPE_SERVER_TLS_CERT: "c.pem" })).toThrow(/key is missing/);
    expect(() => load({ TAPE_SERVER_TLS_KEY: "k.pem" })).toThrow(/cert is missing/);
    const both = load({ TAPE_SERVER_TLS_CERT: "c.pem", TAPE_SERVER_TLS_KEY: "k.pem" });
    expect(both.settings.tape.server.tls).toEqual({ cert: "c.pem", key: "k.pem" });
  });

  it("never prints the bootstrap token", () => {
    const shown = JSON.stringify(describeConfig(load({ TAPE_SERVER_BOOTSTRAP_TOKEN: "root.canary" })));
    expect(shown).toContain("tape.server.bootstrap_token");
    expect(shown).not.toContain("canary");
  });
});
