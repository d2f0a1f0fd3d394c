import { expect, it } from "vitest";
import { calm, setStage } from "./stage.ts";

const name = "report";

it("tryAcquire, stealExpired and acquireOrSteal each take only leases in the states they name", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  expect(await a.leases.stealExpired(name)).toBeUndefined(); // it was never held
  const lease = await a.leases.tryAcquire(name, { ttl: "20s" });
  expect(lease).toMatchObject({ token: 1n, belief: "held" });
  expect(await b.leases.tryAcquire(name)).toBeUndefined();
  expect(await b.leases.stealExpired(name)).toBeUndefined();
  expect(await b.leases.acquireOrSteal(name)).toBeUndefined();
  await a.close(); // stops renewing without a release
  await stage.clock.elapse(20_000);
  expect(await b.leases.tryAcquire(name)).toBeUndefined(); // expired is not free
  const stolen = await b.leases.stealExpired(name);
  expect(stolen?.token).toBe(2n);
  expect(() => lease?.assert()).toThrow("TAPE_LEASE_LOST");
  expect(await b.leases.release(stolen!)).toBe(true);
  expect((await b.leases.acquireOrSteal(name))?.token).toBe(4n);
});

it("acquire stands by and a release wakes it; an abort signal or closing the app ends the wait", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  const held = await a.leases.acquire(name);
  const next = b.leases.acquire(name);
  await stage.clock.elapse(120_000); // renewed throughout
  await held.release();
  await calm();
  const lease = await next;
  expect(lease.token).toBe(3n);

  const stop = new AbortController();
  const waiting = a.leases.acquire(name, { signal: stop.signal });
  await calm();
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  const closed = a.leases.acquire(name);
  await calm();
  await a.close();
  await expect(closed).rejects.toThrow("TAPE_STORE_CLOSED");
});

it("renew returns the belief; takeover fences the holder; explain and history show what happened", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  expect(await a.leases.explain(name)).toBeUndefined();
  const lease = await a.leases.acquire(name, { ttl: "20s", maxStall: "30s" });
  lease.progress("page 3");
  expect(await a.leases.renew(lease)).toBe("held");
  const label = (await a.leases.explain(name))?.label;
  expect(await a.leases.explain(name)).toMatchObject({
    state: "HELD",
    token: 1n,
    maxStallMs: 30_000,
    text: `report: held by ${label} under token 1 for 0.0 s, started by start; last progress 0.0 s ago (page 3); expires in 20.0 s unless renewed`,
  });
  const taken = await b.leases.takeover(name, { reason: "wrong numbers", by: "ada" });
  expect(await a.leases.renew(lease)).toBe("lost");
  expect(() => lease.assert()).toThrow("TAPE_LEASE_LOST");
  await b.leases.release(taken);
  expect((await b.leases.explain(name))?.text).toBe("report is free after token 3");
  await b.leases.pause(name, { reason: "holidays", by: "ada" });
  expect((await b.leases.explain(name))?.text).toContain("paused by an operator");
  await expect(b.leases.tryAcquire(name)).rejects.toThrow("TAPE_LEASE_PAUSED");
  const story = (await b.leases.history(name)).map(({ startReason, endReason, by, auditReason }) => [
    startReason,
    endReason,
    by,
    auditReason,
  ]);
  expect(story).toEqual([
    ["start", "manual", undefined, undefined],
    ["manual", "released", "ada", "wrong numbers"],
    ["manual", "manual", "ada", "holidays"],
  ]);
  expect((await b.leases.list()).map(({ name: one }) => one)).toEqual([name]);
  expect(await b.leases.list({ held: true })).toEqual([]);
});

it("bad durations and impossible relations are refused before any call to the store", async () => {
  const stage = await setStage();
  const app = await stage.app("a");
  await expect(app.leases.tryAcquire(name, { ttl: "10s", heartbeat: "20s" })).rejects.toThrow("TAPE_BAD_TIMING");
  await expect((async () => app.leases.tryAcquire(name, { ttl: "soon" as "1s" }))()).rejects.toThrow("TAPE_BAD_INPUT");
  expect(await app.leases.explain(name)).toBeUndefined();
});

it("the next holder of a lease gets its checkpoint; a stale one cannot move it, and it is bounded", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  const lease = await a.leases.acquire(name, { ttl: "20s" });
  expect(lease.checkpoint).toBeUndefined();
  await lease.saveCheckpoint("page 3");
  await lease.saveCheckpoint("page 4");
  expect(lease.checkpoint).toBe("page 4");
  expect((await b.leases.explain(name))?.text).toContain("; checkpoint page 4");
  await expect(lease.saveCheckpoint("x".repeat(4_097))).rejects.toThrow("TAPE_TOO_LARGE");
  await expect(lease.saveCheckpoint(7 as never)).rejects.toThrow("TAPE_BAD_INPUT");
  expect([lease.checkpoint, lease.counters().progress]).toEqual(["page 4", 2]);
  const taken = await b.leases.takeover(name, { reason: "drill", by: "ada" });
  expect(taken.checkpoint).toBe("page 4");
  await expect(lease.saveCheckpoint("late")).rejects.toThrow("TAPE_FENCED"); // it believes that it holds the lease
  expect(lease.checkpoint).toBe("page 4");
  await a.leases.renew(lease);
  await expect(lease.saveCheckpoint("later")).rejects.toThrow("TAPE_LEASE_LOST");
  await taken.saveCheckpoint(null);
  expect(taken.checkpoint).toBeUndefined();
  await b.leases.release(taken);
  expect((await b.leases.acquire(name)).checkpoint).toBeUndefined();
});
