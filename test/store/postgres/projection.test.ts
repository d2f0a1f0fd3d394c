import { afterEach, beforeEach, expect, inject, it } from "vitest";
import type { Store } from "../../../src/store/contract/store.ts";
import { record, tenant } from "../../../testkit/conformance/frame.ts";
import {
  begin,
  decided,
  dispatched,
  ended,
  type Holder,
  intent,
  settled,
  startChild,
} from "../../../testkit/conformance/holder.ts";
import { checkProjection } from "../../../testkit/projection.ts";
import { type Hand, type Scene, sceneOn, until } from "./scene.ts";

/**
 * A transaction has its number from its first lock on. One that then waits commits after others with larger numbers,
 * and its records come before theirs in the feed: the order of the feed is not that of the commits.
 */
let scene: Scene;
let hand: Hand;
let store: Store;
beforeEach(async () => {
  scene = await sceneOn(inject("postgres18"));
  hand = await scene.hand();
  ({ store } = scene);
});
afterEach(() => scene.close());

/** Executes `early` and holds it in the middle of its transaction, on this row, until `late` has committed. */
async function overtaken(row: string, early: () => Promise<unknown>, late: () => Promise<unknown>): Promise<void> {
  await hand.sql(`begin; select 1 from ${row} for update`);
  const held = early();
  await scene.untilBlocked();
  await late();
  await hand.sql("commit");
  await held;
}

const gate = record("gate.opened", { pos: 1, name: "g", timeoutMs: 0 });
const resolved = record("gate.resolved", { pos: 1, to: "TIMED_OUT" });
const gateOf = (run: Holder) => `tape.gates where run = ${run.journal}`;
const fire = async ({ id }: Holder): Promise<void> => {
  const [timer] = await store.read.timers(tenant, { run: id });
  await store.intake.fireTimer(tenant, timer!);
};

type Case = [
  name: string,
  /** Two kinds of records, in the order of the feed; they are committed in the opposite order. */
  feed: [string, string],
  play: () => Promise<Holder>,
  /** Makes a row of the run differ from its records. */
  breaks: (journal: number) => string,
];

const cases: Case[] = [
  [
    "a note that waited while the run parked",
    ["child.settled", "term.ended"],
    async () => {
      const parent = await begin(store);
      const child = await startChild(parent, 0, `${parent.id}/0`);
      // Two records: their plan counts the note last. The batch, which takes single ends, counts it first.
      const end = ended("COMPLETED", { parent: { journal: parent.journal, pos: 0, id: child.id }, outcome: 1 });
      const ends = () => child.write(record("step.done", { pos: 1, name: "s", value: 1 }), end);
      await overtaken(`tape.runs where journal = ${child.journal}`, ends, () => parent.release());
      return parent;
    },
    (journal) => `update tape.leases set next_reactor = null where journal = ${journal}`,
  ],
  [
    "a gate that was resolved after its timer had fired",
    ["gate.resolved", "timer.fired"],
    async () => {
      const run = await begin(store);
      await run.write(gate);
      await overtaken(
        gateOf(run),
        () => run.write(resolved),
        () => fire(run),
      );
      return run;
    },
    (journal) => `update tape.timers set status = 'CANCELLED' where run = ${journal}`,
  ],
  [
    "a decision that found a timer fired",
    ["run.decided", "timer.fired"],
    async () => {
      const run = await begin(store);
      await run.write(gate);
      await overtaken(
        gateOf(run),
        () => run.write(decided("cancelled")),
        () => fire(run),
      );
      return run;
    },
    (journal) => `update tape.timers set status = 'CANCELLED' where run = ${journal}`,
  ],
  [
    "a business key that another run had and released",
    ["effect.intended", "effect.settled"],
    async () => {
      const [run, other] = [await begin(store), await begin(store)];
      const businessKey = `order of ${run.id}`;
      await run.write(gate);
      const had = async () => {
        await other.write(intent(0, { businessKey }), dispatched(0));
        await other.write(settled(0, "FAILED"));
      };
      await overtaken(gateOf(run), () => run.write(resolved, intent(2, { businessKey })), had);
      return run;
    },
    (journal) => `delete from tape.business_keys where run = ${journal}`,
  ],
  [
    "a budget that another run had drawn on and released",
    ["budget.reserved", "budget.charged"],
    async () => {
      const run = await begin(store, { budget: { usd: 5 } });
      const child = await startChild(run, 0, `${run.id}/0`);
      const reserved = record("budget.reserved", { pos: 2, rootRun: run.journal, amounts: { usd: 5 } });
      await run.write(gate);
      const drew = async () => {
        await child.write(reserved);
        await child.write(record("budget.charged", { pos: 2, rootRun: run.journal, spent: {}, reserved: { usd: 5 } }));
      };
      await overtaken(gateOf(run), () => run.write(resolved, reserved), drew);
      return run;
    },
    (journal) => `update tape.budgets set spent = spent + 1 where run = ${journal}`,
  ],
];

it.each(cases)("%s is no fault, and a row that differs is one", async (_name, [first, second], play, breaks) => {
  const { journal } = await play();
  await expect.poll(() => checkProjection(store, [tenant]), { timeout: 10_000 }).toEqual([]);
  // There was something to judge: the record committed last comes first.
  // The feed waits for open transactions, also for those of other tests on the same server.
  let kinds: string[] = [];
  const isComplete = async (): Promise<boolean> => {
    kinds = (await store.read.feed(undefined)).records.map(({ kind }) => kind);
    return kinds.includes(first) && kinds.lastIndexOf(second) > kinds.indexOf(first);
  };
  await until(isComplete, `${first} before ${second} are not in the feed`);
  expect(kinds.lastIndexOf(second)).toBeGreaterThan(kinds.indexOf(first));
  expect(await checkProjection({ ...store, backend: "sqlite" }, [tenant])).not.toEqual([]);

  await hand.sql(breaks(journal));
  expect(await checkProjection(store, [tenant])).not.toEqual([]);
});
