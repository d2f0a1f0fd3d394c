import { strict as assert } from "node:assert";
import type { Census, Store } from "../../src/store/contract/store.ts";
import { acquired, type Cases, claimant, heldRun, record, refused, request, spec, tenant, unique } from "./frame.ts";
import { armed, begin, confirmed, dispatched, ended, intent, settled } from "./holder.ts";
import { brief, pastBrief } from "./lease-fixtures.ts";

const reactors = ["recovery", "reconciler", "outbox", "timers", "compensation"];

const dueOf = (census: Census): Record<string, number> =>
  Object.fromEntries(census.reactors.map(({ reactor, due }) => [reactor, due]));
const runsOf = ({ runs }: Census): Record<string, number> =>
  Object.fromEntries(runs.filter(({ count }) => count > 0).map(({ status, count }) => [status, count]));
const heldOf = ({ held }: Census): Record<string, number> =>
  Object.fromEntries(held.filter(({ count }) => count > 0).map(({ kind, count }) => [kind, count]));

/** `due` of every reactor, which must be what the census has. */
async function bothOf(store: Store): Promise<Census> {
  const census = await store.read.census(tenant);
  const due = dueOf(census);
  for (const reactor of reactors) assert.equal(await store.read.due(reactor, 100, tenant), due[reactor] ?? 0, reactor);
  return census;
}

/** What operators watch: due work, open runs, effects in doubt, held leases. */
export const census: Cases = ({ it }, fresh) => {
  it("an empty store has no work, and neither has one whose work is another tenant's", async () => {
    const { store } = fresh();
    const empty = await bothOf(store);
    assert.deepEqual([empty.reactors, runsOf(empty), empty.inDoubt, heldOf(empty)], [[], {}, [], {}]);
    await store.intake.createRuns("globex", [spec(), spec()]);
    assert.deepEqual(await bothOf(store), empty);
    assert.deepEqual(runsOf(await store.read.census("globex")), { RUNNABLE: 2 });
  });

  it("counts runs by status, leases by kind and due work by reactor, as they change", async () => {
    const { store, elapse } = fresh();
    for (const workflow of ["a", "a", "b", "c"]) await store.intake.createRuns(tenant, [spec({ workflow })]);
    const running = await begin(store);
    const stuck = await begin(store);
    await stuck.write(record("run.stuck", { reason: "an operator must decide" }));
    const done = await begin(store);
    await done.write(ended("COMPLETED", { outcome: 1 }));
    const waiting = await begin(store);
    await waiting.release();
    await acquired(store, request({ name: unique("leader") }));
    const first = await bothOf(store);
    assert.deepEqual(runsOf(first), { RUNNABLE: 4, RUNNING: 1, STUCK: 1 });
    assert.deepEqual(dueOf(first), { recovery: 4 });
    assert.deepEqual(heldOf(first), { run: 2, name: 1 });
    await elapse(20);
    const [lag] = (await bothOf(store)).reactors;
    assert.ok(lag !== undefined && lag.lagMs >= 15 && lag.lagMs < 60_000, `${lag?.lagMs} ms late`);
    await running.write(intent(0, { dispatch: "outbox" }), intent(1, { dispatch: "outbox" }));
    assert.deepEqual(dueOf(await bothOf(store)), { recovery: 4, outbox: 2 });
    await store.intake.signal(tenant, waiting.id, { name: "go", value: 1 });
    assert.deepEqual(dueOf(await bothOf(store)), { recovery: 5, outbox: 2 });
    assert.equal(await store.read.due("recovery", 2, tenant), 2, "a count stops at its cap");
    assert.equal(await store.read.due("nightly", 2, tenant), 0);
  });

  it("a holder whose lease has expired is due, and so are timers; what falls due later is not", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    const timer = (pos: number, delayMs: number) => record("timer.set", { pos, purpose: "sleep", delayMs });
    await run.write(timer(0, 0), timer(1, 3_600_000));
    await heldRun(store, {}, claimant(undefined, brief));
    await elapse(pastBrief);
    assert.deepEqual(dueOf(await bothOf(store)), { recovery: 1, timers: 1 });
    const later = await begin(store);
    await later.release(0, { nextReactor: "recovery", delayMs: 3_600_000 });
    assert.deepEqual(dueOf(await bothOf(store)), { recovery: 1, timers: 1 });
  });

  it("effects and obligations in doubt are counted with the age of the oldest", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    const unsafe = { semantics: "non_idempotent" } as const;
    for (const pos of [0, 1]) {
      await run.write(intent(pos, unsafe), dispatched(pos), settled(pos, "UNKNOWN", { reason: "ack_lost" }));
      await elapse(20);
    }
    await run.write(...confirmed(2), armed(2));
    const { inDoubt } = await bothOf(store);
    assert.deepEqual(
      inDoubt.map(({ role, status, count }) => [role, status, count]),
      [["effect", "UNKNOWN", 2]],
    );
    assert.ok(inDoubt[0]!.ageMs >= 35 && inDoubt[0]!.ageMs < 60_000, `${inDoubt[0]!.ageMs} ms old`);
  });

  it("a queue's waiting runs are due as far as it has free slots", async () => {
    const { store } = fresh();
    const name = unique("queue");
    await store.intake.putQueue(tenant, name, { counts: "running", concurrency: 2 });
    for (let k = 0; k < 5; k++) await store.intake.createRuns(tenant, [spec({ queue: name })]);
    const waiting = await bothOf(store);
    assert.deepEqual([runsOf(waiting), dueOf(waiting)], [{ QUEUED: 5 }, { recovery: 2 }]);
    await store.intake.pauseQueue(tenant, name, true, { by: "ada", reason: "r" });
    assert.deepEqual(dueOf(await bothOf(store)), {});
  });

  it("[INV-5] a cap that is too large or no number is refused", async () => {
    const { store } = fresh();
    await refused("TAPE_TOO_LARGE", store.read.due("recovery", 10_001, tenant));
    for (const cap of [0, -1, 1.5, "3"])
      await refused("TAPE_BAD_INPUT", store.read.due("recovery", cap as number, tenant));
    await refused("TAPE_BAD_INPUT", store.read.due("", 1, tenant));
    await refused("TAPE_BAD_INPUT", store.read.census(5 as unknown as string));
  });
};
