import { expect, it } from "vitest";
import type { LeaseTransition } from "../../src/lease/lease.ts";
import { beat, calm, granted, name, setStage, trust } from "./stage.ts";

async function held() {
  const stage = await setStage();
  const keeper = stage.keeper();
  return { ...stage, keeper, lease: await granted(keeper.tryAcquire(name)) };
}

it("a listener receives every transition once, in order", async () => {
  const { clock, probe, lease } = await held();
  const seen: LeaseTransition["to"][] = [];
  lease.onChange(({ to }) => seen.push(to));
  for (let k = 0; k < 3; k++) {
    probe.next.renew.push("before", "before", "before");
    await clock.elapse(2 * beat);
  }
  probe.standing.renew = "before";
  await clock.elapse(2 * trust);
  expect(seen).toEqual(["unknown", "held", "unknown", "held", "unknown", "held", "unknown", "lost"]);
});

it("a slow listener misses no transition", async () => {
  const { clock, probe, lease } = await held();
  const seen: LeaseTransition["to"][] = [];
  lease.onChange(async ({ to }) => {
    await clock.sleep(60_000);
    seen.push(to);
  });
  probe.next.renew.push("before");
  await clock.elapse(beat + 1_000);
  await lease.release();
  expect(seen).toEqual([]);
  await clock.elapse(120_000);
  expect(seen).toEqual(["unknown", "held", "lost"]);
});

it("a transition that a listener causes is reported after the one it is handling", async () => {
  const { clock, probe, lease } = await held();
  const first: LeaseTransition["to"][] = [];
  const second: LeaseTransition["to"][] = [];
  lease.onChange(({ to }) => {
    first.push(to);
    if (to === "unknown") void lease.release();
  });
  lease.onChange(({ to }) => second.push(to));
  probe.next.renew.push("before");
  await clock.elapse(beat);
  expect([first, second]).toEqual([
    ["unknown", "lost"],
    ["unknown", "lost"],
  ]);
});

it("an unsubscribed listener receives nothing", async () => {
  const { lease } = await held();
  let calls = 0;
  const stop = lease.onChange(() => calls++);
  stop();
  stop();
  await lease.release();
  expect(calls).toBe(0);
});

const faults: Record<string, () => unknown> = {
  throws: () => {
    throw new Error("listener");
  },
  rejects: async () => {
    throw new Error("listener");
  },
  "never comes to an end": () => new Promise(() => {}),
};

it.each(Object.keys(faults))("a loss callback that %s harms no other listener and no other lease", async (kind) => {
  const { clock, probe, keeper, lease, logged } = await held();
  const neighbour = await granted(keeper.tryAcquire("neighbour"));
  let notified = 0;
  lease.onChange(faults[kind]!);
  lease.onChange(() => notified++);
  await keeper.takeover(name, "ann", "test").then((rival) => rival.release());
  await clock.elapse(beat);
  expect(notified).toBe(1);
  expect(lease.abortSignal.aborted).toBe(true);
  const renewals = probe.renewals.length;
  await clock.elapse(3 * beat);
  neighbour.assert();
  expect(probe.renewals).toHaveLength(renewals + 3);
  expect(logged.filter((event) => event === "lease.listener_failed")).toHaveLength(kind.startsWith("never") ? 0 : 1);
});

it("a loss callback that blocks the thread: the other leases notice by their own clocks, and continue if they can", async () => {
  const { clock, keeper, lease } = await held();
  const neighbour = await granted(keeper.tryAcquire("neighbour"));
  const short = await granted(keeper.tryAcquire("short", { timings: { ttlMs: 12_000 } }));
  lease.onChange(() => clock.stall(11_000));
  lease.end("test");
  expect(short.abortSignal.aborted).toBe(false);
  expect(() => short.assert()).toThrow("TAPE_LEASE_LOST");
  neighbour.assert();
  await clock.elapse(0);
  await calm();
  expect(neighbour.remainingMs()).toBe(trust); // overdue, so renewed at once
});
