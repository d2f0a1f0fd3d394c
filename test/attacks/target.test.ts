import { describe, expect, it } from "vitest";
import { attackTarget, backends, packed } from "./target.ts";

describe.each(backends)("the target of attacks on %s", (backend) => {
  const target = attackTarget(backend);

  it("has tokens of two tenants and its own admin", async () => {
    const { call, token, bootstrap, store } = target();
    const who = await call("GET", "/v1/whoami", { token: token("globex", "worker") });
    expect(who.json).toMatchObject({ tenant: "globex", role: "worker" });
    expect((await call("GET", "/v1/whoami", { token: bootstrap })).json).toMatchObject({ tenant: "home" });
    const body = packed({ id: "r-1", workflow: "w", input: 1 });
    const headers = { "content-encoding": "gzip", "content-type": "application/json" };
    expect((await call("POST", "/v1/runs", { token: token("acme", "starter"), body, headers })).status).toBe(200);
    expect((await store.read.run("acme", "r-1"))?.workflow).toBe("w");
    expect(target().alive()).toBe(true);
  });

  it("reports no stall of a healthy server", async () => {
    const { measured, call } = target();
    const { stall, growth, summary } = await measured(async () => {
      for (let k = 0; k < 20; k++) await call("GET", "/livez");
    });
    expect(stall, summary).toBeLessThan(10);
    expect(growth, summary).toBeLessThan(1.5);
  });

  it("detects a stopped server", async () => {
    const { measured, pausedFor } = target();
    const { stall, excess, summary } = await measured(() => pausedFor(500));
    expect(stall, summary).toBeGreaterThan(2);
    expect(excess, summary).toBeGreaterThan(250);
  });
});
