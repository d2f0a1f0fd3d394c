import { strict as assert } from "node:assert";
import { beforeAll, describe, it } from "vitest";
import type { Evidence } from "../../simulation/evidence.ts";
import { figuresOf } from "../../simulation/figures.ts";
import { brokenInvariants, invariants } from "../../simulation/invariants/index.ts";
import { remembered } from "../../simulation/invariants/rewound.ts";
import { minimise } from "../../simulation/minimise.ts";
import { type Plan, planOf } from "../../simulation/plan.ts";
import { rightClock } from "../../simulation/plan-faults.ts";
import type { Op } from "../../simulation/program.ts";
import { simulate } from "../../simulation/simulate.ts";
import { canary } from "../../simulation/strangers.ts";
import { sweeperName } from "../../simulation/sweeper.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";

const lanes: Op = {
  op: "lanes",
  lanes: [
    { name: "lane 0", turns: 2, workMs: 50 },
    { name: "lane 1", turns: 2, workMs: 900 },
  ],
  restMs: undefined,
};

/** A world in which nothing goes wrong by itself: what a checker complains about was put there by the test. */
const calm: Plan = {
  ...planOf(1),
  replicas: 2,
  remote: [false, true],
  clocks: [rightClock, rightClock],
  ttlMs: 12_000,
  travelMs: 2,
  deafness: 0,
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
  deeds: [
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
    deeds: [
      { atMs: 500, what: "start several at once", n: 0 },
      { atMs: 1_000, what: "schedule", n: 0 },
      { atMs: 1_200, what: "put", n: 0 },
      { atMs: 1_300, what: "put", n: 1 },
      { atMs: 1_400, what: "delete", n: 1 },
      { atMs: 3_000, what: "child", n: 0 },
    ],
    walks: [{ atMs: 2_000, list: "feed", of: "neighbours", rows: 1, pauseMs: 600 }],
  },
  unbegun: {
    id: "unbegun",
    workflow: "nowhere",
    program: { ops: [{ op: "step", fails: false }], attempts: 1 },
    atMs: 1_000,
    cancelAfterMs: 0,
  },
  wallStep: undefined,
  faults: [],
  rewind: undefined,
  healAtMs: 20_000,
  heals: true,
  person: false,
};

describe("the checkers", () => {
  let evidence: Evidence;
  let rewound: Evidence;
  const complains = (of: Evidence, name: string): void =>
    assert.notDeepEqual(invariants[name]!(remembered(of)), [], name);

  beforeAll(async () => {
    evidence = await simulate(calm);
    const run = calm.runs[0]!;
    const act = { op: "sleep", ms: 9_000 } as const;
    const rewind = { snapshotAtMs: 4_000, atMs: 7_000, awayMs: 500 };
    const sleeper = { ...run, program: { ops: [act, { op: "step", fails: false } as const], attempts: 1 } };
    const without = { signals: [], schedules: [], deeds: [], guarded: [], unbegun: undefined };
    rewound = await simulate({ ...calm, ...without, runs: [sleeper], rewind });
  });

  it("find nothing in a calm world, nor in one that went back", () => {
    assert.deepEqual(brokenInvariants(evidence), []);
    assert.deepEqual(brokenInvariants(rewound), []);
  });

  it("see a body that goes on after its successor has begun", () => {
    const journal = [...evidence.named].find(([, name]) => name === sweeperName)![0];
    const feed = evidence.feed.map((record) =>
      record.journal === journal && record.kind === "term.started"
        ? { ...record, data: { ...record.data, reason: "timeout" as const, previous: undefined } }
        : record,
    );
    const first = evidence.sweeps[0]!;
    const last = evidence.sweeps.at(-1)!;
    const late = { ...first, what: "swept" as const, at: last.at + 1_000 };
    complains({ ...evidence, feed: feed as Evidence["feed"], sweeps: [...evidence.sweeps, late] }, "certaintyIsRight");
    complains({ ...evidence, sweeps: [...evidence.sweeps, late] }, "sweepsAreInOrder");
  });

  it("see two bodies under one token, and in one process", () => {
    const first = evidence.sweeps[0]!;
    complains({ ...evidence, sweeps: [first, { ...first, process: "9.9" }] }, "oneBodyForAToken");
    complains({ ...evidence, sweeps: [first, { ...first, token: first.token + 1n }] }, "oneBodyInAProcess");
    complains({ ...evidence, sweeps: [{ ...first, token: 77n }] }, "bodiesHaveTerms");
  });

  it("see a slot that was lost, doubled by its age, early, or paused", () => {
    const scheduled = evidence.runs.filter(({ labels }) => labels.schedule === "tick");
    assert.ok(scheduled.length >= 4);
    const [, second] = [...scheduled].sort((a, b) => a.createdAt - b.createdAt);
    complains({ ...evidence, runs: evidence.runs.filter((run) => run !== second) }, "slotsAreNotLost");
    const early = evidence.runs.map((run) => (run === second ? { ...run, createdAt: run.createdAt - 5_000 } : run));
    complains({ ...evidence, runs: early }, "slotsAreRight");
    const story = evidence.schedules[0]!;
    const moved = story.did.map((one) => (one.what === "pause" ? { ...one, to: one.to - 5_000 } : one));
    complains({ ...evidence, schedules: [{ ...story, did: moved }] }, "pausesHold");
    const skipping = { ...story, plan: { ...story.plan, overlap: "skip" as const } };
    const long = evidence.runs.map((run) =>
      labelled(run) ? { ...run, endedAt: (run.endedAt ?? run.createdAt) + 9_000 } : run,
    );
    complains({ ...evidence, runs: long, schedules: [skipping] }, "overlapsAreKept");
  });
  const labelled = (run: Evidence["runs"][number]): boolean => run.labels.schedule === "tick";

  it("see a value that nobody can have read, and a watcher that missed one", () => {
    const values = evidence.values.map((one) =>
      one.input.op === "read" && one.output !== undefined && one.output !== "conflict"
        ? { ...one, output: { ...one.output, value: "never written" } }
        : one,
    );
    complains({ ...evidence, values }, "valuesAreLinearizable");
    const [seen = []] = evidence.watched;
    assert.ok(seen.length > 2);
    complains({ ...evidence, watched: [seen.filter((_, k) => k !== 1)] }, "watchersSeeAll");
  });

  it("see a quota that lets too many in, too few, or counts wrong", () => {
    const [starts, ...others] = evidence.quotas;
    assert.deepEqual([starts!.fresh, starts!.refused, starts!.used.runs], [2, ["runs", "runs"], 2]);
    complains({ ...evidence, quotas: [{ ...starts!, fresh: 3, open: 3 }, ...others] }, "quotasHold");
    complains({ ...evidence, quotas: [{ ...starts!, open: 1 }, ...others] }, "quotasLeaveRoom");
    complains({ ...evidence, quotas: [{ ...starts!, other: ["TAPE_INVARIANT"] }] }, "quotasLeaveRoom");
    complains({ ...evidence, quotas: [{ ...starts!, open: 1 }] }, "quotasAreCounted");
    complains({ ...evidence, quotas: [{ ...starts!, schedules: 1 }] }, "quotasAreCounted");
    const { counted, found } = evidence.measured!;
    assert.ok(counted !== null && counted > 100);
    complains({ ...evidence, measured: { counted: counted - 1, found } }, "quotasAreCounted");
  });

  it("see a walk that missed something, saw something twice, or of another tenant", () => {
    const [walk] = evidence.walks;
    assert.ok(walk!.seen.length > 2 && walk!.after.length > walk!.before.length);
    const walked = (changed: object): Evidence => ({ ...evidence, walks: [{ ...walk!, ...changed }] });
    complains(walked({ seen: walk!.seen.slice(1) }), "walksAreWhole");
    complains(walked({ seen: [...walk!.seen, walk!.seen[0]!] }), "walksAreWhole");
    complains(walked({ foreign: walk!.seen.slice(0, 1) }), "walksAreWhole");
  });

  it("see a deletion that erased too little, or too much", () => {
    const [kept, deleted] = evidence.keptValues;
    assert.deepEqual([kept!.found.length, deleted!.found[0]?.deleted], [1, true]);
    complains({ ...evidence, keptValues: [{ ...kept!, found: [] }] }, "deletionsErase");
    const [log] = evidence.valueLogs;
    const logged = (found: readonly object[]): Evidence => ({
      ...evidence,
      valueLogs: [{ key: log!.key, found: found as (typeof log & object)["found"] }],
    });
    complains(logged([]), "deletionsErase");
    complains(logged(log!.found.slice(1)), "deletionsErase");
    complains(logged(log!.found.toSpliced(1, 1)), "deletionsErase");
    complains(logged([...log!.found, { ...log!.found.at(-1), deleted: true }]), "deletionsErase");
    complains(logged(log!.found.with(0, { ...log!.found[0]!, value: "never written" })), "deletionsErase");
  });

  it("see a door that lets an old token in, or two at once, or refuses the newest", () => {
    assert.ok(evidence.knocks.some(({ what }) => what === "in"));
    const knock = (token: bigint, what: Evidence["knocks"][number]["what"]) => ({ token, what });
    const of = (...knocks: Evidence["knocks"]): Evidence => ({ ...evidence, knocks });
    assert.deepEqual(invariants.doorsKeepOrder!(of(knock(1n, "came"), knock(1n, "in"), knock(1n, "in"))), []);
    complains(of(knock(2n, "in"), knock(2n, "out"), knock(1n, "in")), "doorsKeepOrder");
    complains(of(knock(1n, "in"), knock(2n, "in")), "doorsKeepOrder");
    complains(of(knock(2n, "came"), knock(2n, "refused")), "doorsKeepOrder");
  });

  it("see a manual action without its entry in the audit, and an entry that nobody made", () => {
    assert.equal(evidence.deeds.filter(({ at }) => at !== undefined).length, 2);
    complains({ ...evidence, audit: evidence.audit.slice(1) }, "deedsAreAudited");
    complains({ ...evidence, deeds: evidence.deeds.slice(1) }, "deedsAreAudited");
  });

  it("see an entry of the audit that was changed, moved or is not sealed", () => {
    const [newest, ...older] = evidence.audit;
    assert.ok(older.length > 0);
    complains(
      { ...evidence, audit: [newest!, { ...older[0]!, reason: "another" }, ...older.slice(1)] },
      "auditIsSealed",
    );
    complains({ ...evidence, audit: older.toReversed().concat(newest!) }, "auditIsSealed");
    complains({ ...evidence, audit: evidence.audit.map((entry) => ({ ...entry, hash: "" })) }, "auditIsSealed");
  });

  it("see what a stranger got, and what it left", () => {
    assert.deepEqual(
      evidence.strangers.map(({ got }) => got),
      ["TAPE_FENCED", "TAPE_RUN_NOT_FOUND", "nothing"],
    );
    assert.ok(evidence.strangers.some(({ current }) => current));
    const [first] = evidence.strangers;
    complains({ ...evidence, strangers: [{ ...first!, got: "an answer: head" }] }, "strangersGetNothing");
    const feed = evidence.feed.map((record) =>
      record.kind === "step.done" ? { ...record, data: { ...record.data, name: canary } } : record,
    );
    complains({ ...evidence, feed: feed as Evidence["feed"] }, "strangersChangeNothing");
  });

  it("see a gate that another than its approver answered, and a signal that does not fit", () => {
    assert.deepEqual(
      evidence.guarded.map(({ told }) => told),
      ["TAPE_NOT_APPROVER", "sent", "sent"],
    );
    const signals = (more: object): Evidence["feed"] =>
      evidence.feed.map((record) =>
        record.kind === "signal.sent" ? ({ ...record, data: { ...record.data, ...more } } as FeedRecord) : record,
      );
    complains({ ...evidence, feed: signals({ by: "eve" }) }, "onlyApproversAnswer");
    complains({ ...evidence, feed: signals({ key: "guarded 0" }) }, "onlyApproversAnswer");
    complains({ ...evidence, feed: signals({ value: "many" }) }, "unfitSignalsAreRefused");
    complains({ ...evidence, feed: signals({ value: 7 }) }, "unfitSignalsAreRefused");
    const early = [...evidence.feed].sort((a, b) => Number(a.in === "journal") - Number(b.in === "journal"));
    complains({ ...evidence, feed: early }, "onlyApproversAnswer");
  });

  it("see a run that was ended as if it had never begun, and had", () => {
    const { journal, status } = evidence.runs.find(({ id }) => id === "unbegun")!;
    assert.equal(status, "CANCELLED");
    const step = { kind: "step.done", data: { pos: 0, name: "step", value: 1 } } as const;
    const feed = evidence.feed.flatMap((record) =>
      record.journal === journal && record.kind === "run.ended"
        ? [{ ...record, ...step } as FeedRecord, { ...record, seq: record.seq + 1 }]
        : [record],
    );
    complains({ ...evidence, feed }, "unbegunDidNothing");
  });

  it("see a fork that keeps what was undone", () => {
    const { journal } = evidence.runs[0]!;
    const by = "operator 7";
    const fork = { journal: 77, pos: 1, through: 9, by, reason: "why", seeds: [] };
    const kept = { kind: "fork.kept", data: { records: [{ kind: "effect.settled", data: { pos: 0 } }] } };
    const feed = evidence.feed.flatMap((record) =>
      record.journal === journal && record.kind === "run.created"
        ? [{ ...record, data: { ...record.data, fork } }, { ...record, ...kept } as unknown as FeedRecord]
        : [record],
    );
    const undone = {
      run: 77,
      pos: 0,
      sub: 1,
      role: "compensation",
      surplus: false,
      name: "undo",
      status: "COMPENSATED",
    };
    const effects = [undone] as unknown as Evidence["effects"];
    const deeds = [{ who: by, what: "fork unnamed", asked: 0, at: 1 }];
    complains({ ...evidence, feed: feed as Evidence["feed"], effects, deeds }, "forksKeepWhatStands");
  });

  it("see a sleep that a set clock made shorter", async () => {
    const [run] = calm.runs;
    const nap = { ...run!, program: { ops: [{ op: "sleep", ms: 8_000 } as const], attempts: 1 } };
    const world: Plan = { ...calm, runs: [nap], signals: [], guarded: [], schedules: [], deeds: [], values: [] };
    const stepped = await simulate({ ...world, wallStep: { atMs: 3_000, byMs: 86_400_000 } });
    assert.deepEqual(brokenInvariants(stepped), []);
    const early = stepped.feed.map((record) =>
      record.kind === "sleep.ended" || record.kind === "timer.fired" ? { ...record, at: record.at - 1_000 } : record,
    );
    complains({ ...stepped, feed: early }, "timersKeepTime");
  });

  it("see an answer that was recorded for another lane, or for another question of the same", () => {
    const { handed } = evidence;
    assert.ok(handed.some(({ called }) => !called));
    const [first] = handed;
    for (const answer of [{ lane: "lane 1", turn: 0 }, { lane: "lane 0", turn: 1 }, { lane: "lane 0" }, null]) {
      complains({ ...evidence, handed: [{ ...first!, lane: "lane 0", turn: 0, answer }] }, "lanesKeepTheirAnswers");
    }
    const figures = figuresOf(evidence);
    assert.deepEqual(
      [figures.laneAnswers, figures.laneReplays],
      [handed.length, handed.filter(({ called }) => !called).length],
    );
  });

  it("see a request that counted twice", () => {
    assert.equal(evidence.client.said.length, 1);
    const twice: FeedRecord[] = [];
    for (const record of evidence.feed) twice.push(...(record.kind === "signal.sent" ? [record, record] : [record]));
    complains({ ...evidence, feed: twice }, "requestsCountOnce");
    const never = evidence.feed.filter((record: FeedRecord) => record.kind !== "signal.sent");
    complains({ ...evidence, feed: never }, "requestsCountOnce");
  });

  it("see that nothing happens for too long", () => {
    complains({ ...evidence, settledAt: evidence.healedAt! + 3_600_000 }, "somethingHappens");
  });

  it("see a token issued twice, and an old holder's write, after the store went back", () => {
    const at = rewound.feed.findIndex(({ kind, data }) => kind === "store.restored" && data.epoch > 0);
    const since = (make: (token: bigint) => bigint): Evidence["feed"] =>
      rewound.feed.map((record, k) =>
        k > at && record.token > 0n ? { ...record, token: make(record.token) } : record,
      );
    complains({ ...rewound, feed: since((token) => token % 2n ** 40n) }, "restoredTokensAreNew");
    complains({ ...rewound, feed: since(() => 3n) }, "restoreFences");
  });

  it("excuse what the store has forgotten, and nothing else", () => {
    const gone = { what: "run", run: "gone" } as const;
    const { from, to } = rewound.lost!;
    const withAck = (asked: number, at: number): Evidence => ({
      ...rewound,
      client: { ...rewound.client, acknowledged: [{ ...gone, asked, at }] },
    });
    assert.deepEqual(brokenInvariants(withAck(from + 1, to - 1)), []);
    complains(withAck(from - 100, from - 50), "acknowledgedIsPresent");
    complains(withAck(to + 100, to + 150), "acknowledgedIsPresent");
  });

  it("a failing plan is made as small as it can be", async () => {
    const fault = planOf("some").faults[0] ?? { replica: 0, at: "act", n: 1, edge: "after", strike: "crash", forMs: 5 };
    const plan: Plan = {
      ...calm,
      faults: [
        { ...fault, n: 1 },
        { ...fault, n: 2 },
      ],
    };
    const least = await minimise(plan, async ({ faults }) => faults.some(({ n }) => n === 2));
    assert.deepEqual(
      least.faults.map(({ n }) => n),
      [2],
    );
    assert.deepEqual([least.values, least.schedules, least.signals, least.deeds], [[], [], [], []]);
    assert.equal(least.singleton, undefined);
  });
});
