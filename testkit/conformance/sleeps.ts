import { strict as assert } from "node:assert";
import { isTapeError } from "../../src/model/errors.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { type Cases, record, step, tenant } from "./frame.ts";
import { begin, unchanged } from "./holder.ts";

const timer = (pos: number, inMs: number, purpose: "sleep" | "redrive" = "sleep"): NewRecord =>
  record("timer.set", { pos, purpose, delayMs: inMs });
const onWritten = (pos: number): NewRecord => record("sleep.ended", { pos, fired: true });

/** Due before any case ends, also on a store with real time. */
const soon = 20;
const pastSoon = 50;
/** Due after every case has ended. */
const far = 3_600_000;

/** Another client was faster. */
function isSettled(error: unknown): boolean {
  if (!isTapeError(error, "TAPE_ILLEGAL_TRANSITION")) throw error;
  return false;
}

/** Sleeps that their run's holder ends, and sleeps until a date. */
export const sleeps: Cases = ({ it }, fresh) => {
  it("a holder ends its own sleep with one record: once, never early, fenced", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    await run.write(
      timer(0, soon),
      timer(1, far),
      timer(2, soon, "redrive"),
      record("gate.opened", { pos: 3, name: "approve", timeoutMs: soon }),
    );
    const statuses = async (): Promise<string[]> =>
      (await store.read.timers(tenant, { run: run.id })).map(({ pos, status }) => `${pos} ${status}`).sort();
    await elapse(pastSoon);
    await unchanged(store, async () => {
      for (const pos of [1, 2, 3, 9]) await run.refused("TAPE_ILLEGAL_TRANSITION", onWritten(pos));
      // Not even together with another record that would be accepted alone.
      await run.refused("TAPE_ILLEGAL_TRANSITION", step(7), onWritten(1));
    });
    const head = run.head;
    await run.write(onWritten(0));
    assert.equal(run.head, head + 1);
    assert.deepEqual(await statuses(), ["0 FIRED", "1 SET", "2 SET", "3 SET"]);
    assert.equal((await run.view()).notes, 0, "no note is needed");
    await unchanged(store, async () => {
      await run.refused("TAPE_ILLEGAL_TRANSITION", onWritten(0));
      assert.equal(await store.intake.fireTimer(tenant, { run: run.journal, pos: 0, purpose: "sleep" }), false);
    });
    await run.write(timer(4, 0));
    await run.release();
    await unchanged(store, () => run.refused("TAPE_FENCED", onWritten(4)));
  });

  it("a hundred sleeps ended concurrently have a note or a record each, never both", async () => {
    const { store, another } = fresh();
    const other = await another();
    const runs = await Promise.all(Array.from({ length: 100 }, () => begin(store)));
    await Promise.all(runs.map((run) => run.write(timer(0, 0))));
    const raced = await Promise.all(
      runs.map(async (run, k) => {
        const endSleep = () => run.write(onWritten(0)).then(() => true, isSettled);
        const fire = () =>
          k % 3 === 0 ? false : other.intake.fireTimer(tenant, { run: run.journal, pos: 0, purpose: "sleep" });
        return Promise.all(k % 2 === 0 ? [endSleep(), fire()] : [fire(), endSleep()].reverse());
      }),
    );
    for (const [k, run] of runs.entries()) {
      const [rose, fired] = raced[k]!;
      assert.notEqual(rose, fired, `${k}`);
      assert.equal((await run.view()).notes, fired ? 1 : 0);
      const [row] = await store.read.timers(tenant, { run: run.id });
      assert.equal(row?.status, "FIRED");
    }
  });

  it("a sleep until a date is due at that date, however late it was set", async () => {
    const { store } = fresh();
    const now = await store.read.now();
    const run = await begin(store);
    const until = (pos: number, at: number): NewRecord =>
      record("timer.set", { pos, purpose: "sleep", delayMs: far, until: at });
    await run.write(until(0, now - 1_000), until(1, now + far));
    const due = await store.read.dueTimers(10);
    assert.deepEqual(
      due.map(({ pos, dueAt }) => [pos, dueAt]),
      [[0, now - 1_000]],
    );
    assert.equal(await store.intake.fireTimer(tenant, { run: run.journal, pos: 1, purpose: "sleep" }), false);
    assert.equal(await store.intake.fireTimer(tenant, { run: run.journal, pos: 0, purpose: "sleep" }), true);
  });
};
