import { describe, expect, it } from "vitest";
import { backends, groundOf, packed } from "./ground.ts";

describe.each(backends)("the ground of the attacks on %s", (backend) => {
  const deps = groundOf(backend);

  it("has tokens of two tenants and an admin of its own", async () => {
    const { call, token, bootstrap, store } = deps();
    const who = await call("GET", "/v1/whoami", { token: token("globex", "worker") });
    expect(who.json).toMatchObject({ tenant: "globex", role: "worker" });
    expect((await call("GET", "/v1/whoami", { token: bootstrap })).json).toMatchObject({ tenant: "home" });
    const body = packed({ id: "r-1", workflow: "w", input: 1 });
    const headers = { "content-encoding": "gzip", "content-type": "application/json" };
    expect((await call("POST", "/v1/runs", { token: token("acme", "starter"), body, headers })).status).toBe(200);
    expect((await store.read.run("acme", "r-1"))?.workflow).toBe("w");
    expect(deps().alive()).toBe(true);
  });

  it("sees no stall where there is none", async () => {
    const { measured, call } = deps();
    const { stall, growth, said } = await measured(async () => {
      for (let k = 0; k < 20; k++) await call("GET", "/livez");
    });
    expect(stall, said).toBeLessThan(10);
    expect(growth, said).toBeLessThan(1.5);
  });

  it("sees a server that stands still", async () => {
    const { measured, pausedFor } = deps();
    const { stall, excess, said } = await measured(() => pausedFor(500));
    expect(stall, said).toBeGreaterThan(2);
    expect(excess, said).toBeGreaterThan(250);
  });
});
