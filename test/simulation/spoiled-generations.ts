import type { Evidence } from "../../simulation/evidence.ts";
import { drawStep, turnGate } from "../../simulation/generations.ts";
import type { Plan } from "../../simulation/plan.ts";
import { session } from "../../simulation/plan-generations.ts";
import type { Op } from "../../simulation/program.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import { calm } from "./calm.ts";

const effect: Op = {
  ...{ op: "effect", effect: "idempotent.inline", caught: false },
  args: {
    ...{ id: "paid", businessKey: "paid", faults: [], compensateFaults: [], unresponsive: false, observations: [] },
    ...{ travelMs: 20, answerMs: 40 },
  },
};
const rest: Op = { op: "sleep", ms: 6_000 };
const without = { schedules: [], actions: [], guarded: [], unstarted: undefined, talk: undefined };

/** A session of three turns and an answer. Its second signal arrives during the first turn, and is carried. */
export const generationsWorld: Plan = {
  ...{ ...calm, ...without },
  runs: [
    { ...calm.runs[0]!, id: session, program: { ops: [effect, rest, { op: "continue", next: "same" }], attempts: 1 } },
  ],
  signals: [1_000, 2_000, 16_000].map((atMs, k) => ({ run: session, gate: turnGate, atMs, key: `turn ${k}` })),
};

const change = (world: Evidence, by: (record: FeedRecord) => FeedRecord): Evidence => ({
  ...world,
  feed: world.feed.map(by),
});
const isDraw = (record: FeedRecord): boolean => record.kind === "step.done" && record.data.name === drawStep;
const data = (record: FeedRecord, more: object): FeedRecord =>
  ({ ...record, data: { ...record.data, ...more } }) as never;

/** What is changed in the evidence, by the invariant that must fail then. */
export const spoiledGenerations: readonly (readonly [
  what: string,
  name: string,
  spoil: (world: Evidence) => Evidence,
])[] = [
  [
    "two generations draw the same",
    "drawsAreUnique",
    (world) => change(world, (record) => (isDraw(record) ? data(record, { value: "x" }) : record)),
  ],
  [
    "a generation takes a later signal than the one that it got",
    "signalsAreNotSkipped",
    (world) =>
      change(world, (record) =>
        record.kind === "gate.resolved" && record.data.note === 2 ? data(record, { note: 3 }) : record,
      ),
  ],
  [
    "a drive reads three more records than its generation has",
    "wakeIsBounded",
    (world) => ({
      ...world,
      wakes: world.wakes.map((wake) => {
        const own = world.feed.filter(({ journal, seq }) => journal === wake.journal && seq >= wake.begins).length;
        return { ...wake, records: own + 3 };
      }),
    }),
  ],
  [
    "effects of two generations have one key",
    "keysAreStable",
    (world) => ({ ...world, effects: world.effects.map((row) => ({ ...row, key: `${session}:0` })) }),
  ],
];
