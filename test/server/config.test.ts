import { describe, expect, it } from "vitest";
import { describeConfig } from "../../src/config/describe.ts";
import { loadConfig } from "../../src/config/load.ts";
import { defaultServerLimits } from "../../src/server/limits.ts";
import { defaultTimeouts } from "../../src/server/listen.ts";

const load = (env: Readonly<Record<string, string>> = {}) => loadConfig({ cwd: "/nowhere", env });

describe("tape.server", () => {
  it("its defaults are the server's own", () => {
    const { limits, rate, idle_s: idle } = load().settings.tape.server;
    expect(defaultServerLimits).toEqual({
      ...{ bodyBytes: limits.body_bytes, depth: limits.depth, requests: limits.requests },
      ...{ streams: limits.streams, connections: limits.connections },
      ...{ ratePerSecond: rate.per_second, rateBurst: rate.burst, failedSignIns: rate.failed_sign_ins },
    });
    expect(defaultTimeouts.idleMs).toBe(idle * 1_000);
  });

  it("closed unless it is opened", () => {
    expect(load().settings.tape.server).toMatchObject({ listen: "127.0.0.1:7878", credentials: "none" });
  });

  it("a certificate without its key is refused, and the other way round", () => {
    expect(() => load({ TAPE_SERVER_TLS_CERT: "c.pem" })).toThrow(/key is missing/);
    expect(() => load({ TAPE_SERVER_TLS_KEY: "k.pem" })).toThrow(/cert is missing/);
    const both = load({ TAPE_SERVER_TLS_CERT: "c.pem", TAPE_SERVER_TLS_KEY: "k.pem" });
    expect(both.settings.tape.server.tls).toEqual({ cert: "c.pem", key: "k.pem" });
  });

  it("the bootstrap token is never printed", () => {
    const shown = JSON.stringify(describeConfig(load({ TAPE_SERVER_BOOTSTRAP_TOKEN: "root.canary" })));
    expect(shown).toContain("tape.server.bootstrap_token");
    expect(shown).not.toContain("canary");
  });
});
