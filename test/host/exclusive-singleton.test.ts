import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { calm, noRunner, setStage, untilAborted } from "./stage.ts";

const name = "sweeper";

async function scratchFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tape-exclusive-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "tape.db");
}

/** Counts the calls of a singleton to the store. */
function counting(store: Store): { store: Store; renewals: () => number } {
  let renewals = 0;
  const renew: Store["claim"]["renew"] = (batch) => {
    renewals += batch.length;
    return store.claim.renew(batch);
  };
  return { store: { ...store, claim: { ...store.claim, renew } }, renewals: () => renewals };
}

it("on a file opened exclusively a singleton leads at once after a crash, without standing by, and never renews", async () => {
  const clock = new ManualClock();
  const file = await scratchFile();
  const crashed = await openSqlite({ file, processes: "single", clock });
  const claimant = { owner: "a dead process", label: "dead", reactor: "singleton", ttlMs: 30_000 };
  await crashed.claim.acquire("default", { target: { name }, claimant, nonce: 7n, expect: "free" });
  await crashed.close(); // without a release: the term of the dead process has 30 s left

  const opened = await openSqlite({ file, processes: "single", clock });
  const { store, renewals } = counting(opened);
  expect(store.exclusive).toBe(true);
  const app = await Tape.open({ store, runner: noRunner, work: false, clock });
  let acting = true;
  const singleton = await app.singleton(name, async ({ abortSignal, assert, lease }) => {
    await untilAborted(abortSignal);
    acting = false;
    expect(lease.belief).toBe("held");
    assert();
  });
  await calm(); // no time has passed
  expect(singleton.view()).toMatchObject({ state: "holder", token: 2n });
  await clock.elapse(3_600_000);
  expect(singleton.view()).toMatchObject({ state: "holder", belief: "held", token: 2n });
  expect(renewals()).toBe(0);
  expect(acting).toBe(true);
  await app.close();
  expect(acting).toBe(false);
  const terms = await opened.read.terms("default", { name });
  expect(terms.map(({ token, startReason, endReason }) => [token, startReason, endReason])).toEqual([
    [1n, "start", "manual"],
    [2n, "recovery", "drained"],
  ]);
  expect(terms[1]?.auditReason).toContain("so the previous holder is dead");
  await opened.close();
});

it("the same program on a shared file waits until the dead holder's lease expires", async () => {
  const clock = new ManualClock();
  const file = await scratchFile();
  const crashed = await openSqlite({ file, clock });
  const first = await Tape.open({ store: crashed, runner: noRunner, work: false, clock });
  await first.singleton(name, ({ abortSignal }) => untilAborted(abortSignal));
  await calm();
  await crashed.close();
  const store = await openSqlite({ file, clock });
  const app = await Tape.open({ store, runner: noRunner, work: false, clock });
  const singleton = await app.singleton(name, ({ abortSignal }) => untilAborted(abortSignal));
  await clock.elapse(29_000);
  expect(singleton.state).toBe("standby");
  await clock.elapse(1_100);
  expect(singleton.state).toBe("holder");
  await app.close();
  await store.close();
});

it("a second process is refused the exclusive file", async () => {
  const file = await scratchFile();
  const store = await openSqlite({ file, processes: "single" });
  await expect(openSqlite({ file, processes: "single", busyMs: 50 })).rejects.toThrow("TAPE_STORE_BUSY");
  await store.close();
});

it("of two handles of one process on an exclusive store one leads, and the other follows at once", async () => {
  const stage = await setStage({ exclusive: true });
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  const body = ({ abortSignal }: { abortSignal: AbortSignal }) => untilAborted(abortSignal);
  const [first, second] = await Promise.all([a.singleton(name, body), b.singleton(name, body)]);
  await stage.clock.elapse(120_000);
  expect([first.state, second.state].sort()).toEqual(["holder", "standby"]);
  const [holder, standby] = first.state === "holder" ? [first, second] : [second, first];
  await holder.stop();
  await calm();
  expect(standby.state).toBe("holder");
});

it("an operator can still preempt and pause an exclusive singleton: its body stops although nothing is renewed", async () => {
  const stage = await setStage({ exclusive: true });
  const app = await stage.app("a");
  const singleton = await app.singleton(name, ({ abortSignal }) => untilAborted(abortSignal));
  await calm();
  await app.leases.pause(name, { reason: "maintenance" });
  await calm();
  expect(singleton.state).toBe("standby");
  await app.leases.resume(name, { reason: "done" });
  await calm();
  expect(singleton.state).toBe("holder");
});
