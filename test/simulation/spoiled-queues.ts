import type { Evidence } from "../../simulation/evidence.ts";
import { batchesOf } from "../../simulation/invariants/queues.ts";
import type { PlannedQueueRun, PlannedQueues } from "../../simulation/plan-queues.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";

const run = (queue: string, n: number, more: Partial<PlannedQueueRun> = {}): PlannedQueueRun => ({
  id: `${queue}-${n}`,
  queue,
  key: n % 2 === 0 ? "a" : "b",
  priority: 5,
  atMs: 100 + n,
  insideMs: 300,
  outsideMs: undefined,
  delayMs: undefined,
  expiresMs: undefined,
  cancelAtMs: undefined,
  unique: undefined,
  debounce: undefined,
  ...more,
});

/** Two queues in which every invariant about queues has something to judge. */
export const eventfulQueues: PlannedQueues = {
  queues: [
    { name: "plain", style: "fair", options: { concurrency: 1 } },
    { name: "paced", style: "mixed", options: { concurrency: 2, rate: { limit: 2, per: 4_000 } } },
  ],
  runs: [
    ...Array.from({ length: 10 }, (_, n) => run("plain", n)),
    run("paced", 0, { unique: "only" }),
    run("paced", 1, { unique: "only", atMs: 1_000 }),
    run("paced", 2, { debounce: "last" }),
    run("paced", 3, { debounce: "last", atMs: 500 }),
  ],
  changes: [],
  pauses: [],
  takeovers: [],
};

type Spoil = (world: Evidence) => Evidence;
type CreatedRecord = Extract<FeedRecord, { kind: "run.created" }>;

const inOrder = (world: Evidence, queue: string): number[] =>
  batchesOf(world)
    .filter((batch) => batch.queue === queue)
    .flatMap(({ admitted }) => admitted.map(({ journal }) => journal));

/** The same world with the creations of runs changed. */
const created = (world: Evidence, change: (record: CreatedRecord) => object): Evidence => ({
  ...world,
  feed: world.feed.map((record) =>
    record.kind === "run.created" ? ({ ...record, ...change(record) } as FeedRecord) : record,
  ),
});

const withQueue = ({ data }: CreatedRecord, more: object): object =>
  data.queue === undefined ? {} : { data: { ...data, queue: { ...data.queue, ...more } } };

const admitted = (record: FeedRecord, queue: string): boolean =>
  record.kind === "term.started" && record.data.admitted?.queue === queue;

/** For each invariant about queues, a change of the eventful world that breaks it. */
export const spoiledQueues: Readonly<Record<string, Spoil>> = {
  slotsHold: (world) => {
    const enters = world.insideEvents.filter(({ what, queue }) => what === "enter" && queue === "plain");
    return { ...world, insideEvents: enters.slice(0, 2).map((event) => ({ ...event, at: 0 })) };
  },
  slotsAreProjected: (world) => ({ ...world, projection: ["the keys of queue plain are wrong"] }),
  nothingPassesTheQueue: (world) => ({
    ...world,
    feed: world.feed.filter((record) => !admitted(record, "plain")),
  }),
  ratesHold: (world) => ({
    ...world,
    feed: world.feed.map((record) => (admitted(record, "paced") ? { ...record, at: 5_000 } : record)),
  }),
  oldestFirst: (world) => {
    const first = inOrder(world, "plain")[2];
    return created(world, ({ journal, at }) => ({ at: journal === first ? at + 1_000_000 : at }));
  },
  classesAreKept: (world) => {
    const batch = batchesOf(world).find(({ queue, left }) => queue === "plain" && left.length > 0)!;
    const first = batch.admitted[0]!.journal;
    return created(world, (record) => (record.journal === first ? withQueue(record, { priority: 9 }) : {}));
  },
  fairAmongKeys: (world) => {
    const order = inOrder(world, "plain");
    return created(world, (record) => {
      const n = order.indexOf(record.journal);
      return n < 0 ? {} : withQueue(record, { key: n < 6 || n % 2 === 0 ? "a" : "b" });
    });
  },
  uniqueIsOne: (world) => {
    const at = world.feed.findIndex((record) => record.kind === "run.created" && record.data.unique !== undefined);
    const copy = { ...world.feed[at]!, journal: 900_000_001 };
    return { ...world, feed: world.feed.toSpliced(at + 1, 0, copy) };
  },
  lastInputWins: (world) => {
    const event = world.insideEvents.find((one) => one.run === "paced-2")!;
    return { ...world, insideEvents: [...world.insideEvents, { ...event, mark: "another" }] };
  },
  queuesMove: (world) => ({
    ...world,
    runs: world.runs.map((one) => (one.id === "plain-3" ? { ...one, endedAt: null } : one)),
  }),
};
