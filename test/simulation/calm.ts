import { type Plan, planOf } from "../../simulation/plan.ts";
import { rightClock } from "../../simulation/plan-faults.ts";
import { noObjects } from "../../simulation/plan-objects.ts";
import { noQueues } from "../../simulation/plan-queues.ts";
import type { Op } from "../../simulation/program.ts";

const lanes: Op = {
  op: "lanes",
  lanes: [
    { name: "lane 0", turns: 2, workMs: 50 },
    { name: "lane 1", turns: 2, workMs: 900 },
  ],
  restMs: undefined,
};

/** A world without faults: whatever an invariant finds was put there by the test. */
export const calm: Plan = {
  ...planOf(1),
  queues: noQueues,
  objects: noObjects,
  serverless: undefined,
  sink: undefined,
  shards: undefined,
  retention: undefined,
  builds: undefined,
  replicas: 2,
  remote: [false, true],
  clocks: [rightClock, rightClock],
  ttlMs: 12_000,
  travelMs: 2,
  hintLoss: 0,
  runs: [
    {
      id: "run-0",
      workflow: "once",
      program: { ops: [{ op: "guarded" }, lanes, { op: "gate", name: "left" }], attempts: 1 },
      atMs: 10,
      cancelAtMs: undefined,
      usd: undefined,
      again: undefined,
    },
  ],
  signals: [{ run: "run-0", gate: "left", atMs: 5_000, key: undefined }],
  schedules: [
    {
      id: "tick",
      everySeconds: 2,
      overlap: "allow",
      catchUp: "all",
      program: { ops: [{ op: "step", fails: false }], attempts: 1 },
      atMs: 100,
      pause: { fromMs: 6_000, toMs: 9_000 },
      deleteAtMs: 16_000,
    },
  ],
  values: [
    { client: 0, atMs: 500, key: "x", what: "create" },
    { client: 1, atMs: 900, key: "x", what: "swap" },
    { client: 0, atMs: 1_500, key: "x", what: "put" },
    { client: 0, atMs: 1_700, key: "x", what: "update" },
    { client: 1, atMs: 2_000, key: "x", what: "read" },
    { client: 0, atMs: 2_500, key: "x", what: "put" },
    { client: 0, atMs: 2_900, key: "x", what: "put" },
  ],
  singleton: { everyMs: 500, throws: false },
  actions: [
    { atMs: 2_000, what: "take over", run: "run-0" },
    { atMs: 8_000, what: "take the singleton", run: "run-0" },
  ],
  strangers: [
    { atMs: 4_300, what: "append" },
    { atMs: 4_500, what: "signal" },
    { atMs: 4_700, what: "read" },
  ],
  guarded: [
    { run: "run-0", atMs: 3_000, by: "eve", value: 1, key: "guarded 0" },
    { run: "run-0", atMs: 3_500, by: "ada", value: "many", key: "guarded 1" },
    { run: "run-0", atMs: 4_000, by: "ada", value: 7, key: "guarded 2" },
  ],
  neighbours: {
    actions: [
      { atMs: 500, what: "start several at once", n: 0 },
      { atMs: 1_000, what: "schedule", n: 0 },
      { atMs: 1_200, what: "put", n: 0 },
      { atMs: 1_300, what: "put", n: 1 },
      { atMs: 1_400, what: "delete", n: 1 },
      { atMs: 3_000, what: "child", n: 0 },
    ],
    walks: [{ atMs: 2_000, list: "feed", of: "neighbours", rows: 1, pauseMs: 600 }],
  },
  unstarted: {
    id: "unstarted",
    workflow: "nowhere",
    program: { ops: [{ op: "step", fails: false }], attempts: 1 },
    atMs: 1_000,
    cancelAfterMs: 0,
  },
  talk: {
    ops: [
      { op: "publish", name: "stage", value: 1 },
      { op: "gate", name: "left" },
      { op: "answer" },
      { op: "publish", name: "stage", value: 2 },
      { op: "callback" },
    ],
    starts: [
      { atMs: 200, key: "start 0" },
      { atMs: 600, key: "start 1" },
    ],
    asks: [
      { atMs: 1_000, key: "ask 0", from: 0 },
      { atMs: 3_000, key: "ask 0", from: 1 },
    ],
    calls: [
      { atMs: 4_000, which: 0, wrong: "position" },
      { atMs: 4_500, which: 0, wrong: undefined },
    ],
  },
  wallStep: undefined,
  faults: [],
  rewind: undefined,
  healAtMs: 20_000,
  heals: true,
  resolver: false,
};
