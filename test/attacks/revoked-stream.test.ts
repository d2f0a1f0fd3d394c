import { afterEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../testkit/clock.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { ask, bootstrap, firstLines, type Stage, stage } from "../server/stage.ts";

const open: Stage[] = [];
afterEach(async () => {
  for (const opened of open.splice(0).reverse()) await opened.close();
});

/** A revoked token must not keep reading. */
describe("a stream ends with its token", () => {
  const start = (id: string) => ({ id, workflow: "w", input: "secret" });

  async function reading(expiresInMs?: number) {
    const clock = new ManualClock();
    const one = await stage({ credentials: "required", clock });
    open.push(one);
    await giveTokens(one.store, "default");
    const body = { name: "leaked", role: "reader", reason: "t", ...(expiresInMs === undefined ? {} : { expiresInMs }) };
    const made = await ask(one.server.exchange, "POST", "/v1/tokens", { body, token: bootstrap });
    const { secret, token } = made.json as { secret: string; token: { id: string } };
    const headers = { authorization: `Bearer ${secret}` };
    const stream = await one.server.exchange({ method: "GET", url: "/v1/feed/stream", headers });
    expect(stream.status).toBe(200);
    return { ...one, clock, id: token.id, lines: firstLines(stream, 1_000) };
  }
  const textOf = (lines: unknown[]): string => JSON.stringify(lines);

  it("within five seconds of its revocation", async () => {
    const { server, store, clock, id, lines } = await reading();
    await store.intake.createRuns("default", [start("before")]);
    await clock.elapse(1_000);
    await ask(server.exchange, "POST", `/v1/tokens/${id}/revoke`, { body: { reason: "leaked" }, token: bootstrap });
    await clock.elapse(5_000);
    expect(server.service.streamsOpen).toBe(0);
    await store.intake.createRuns("default", [start("after")]);
    await clock.elapse(2_000);
    const received = textOf(await lines);
    expect(received).toContain("before");
    expect(received).not.toContain("after");
  });

  it("when it expires", async () => {
    const { server, store, clock, lines } = await reading(60_000);
    await store.intake.createRuns("default", [start("before")]);
    await clock.elapse(59_000);
    expect(server.service.streamsOpen).toBe(1);
    await clock.elapse(6_000);
    expect(server.service.streamsOpen).toBe(0);
    await store.intake.createRuns("default", [start("after")]);
    expect(textOf(await lines)).not.toContain("after");
  });

  it("but not because the store is unreachable for a moment", async () => {
    const clock = new ManualClock();
    const one = await stage({ credentials: "required", clock });
    open.push(one);
    await giveTokens(one.store, "acme");
    const headers = { authorization: `Bearer ${tokenOf("acme", "reader")}` };
    expect((await one.server.exchange({ method: "GET", url: "/v1/feed/stream", headers })).status).toBe(200);
    Object.assign(one.store.read, { token: () => Promise.reject(new Error("away")) });
    await clock.elapse(10_000);
    expect(one.server.service.streamsOpen).toBe(1);
    await one.server.drain(0);
  });
});
