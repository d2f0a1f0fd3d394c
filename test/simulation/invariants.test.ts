import { strict as assert } from "node:assert";
import { beforeAll, describe, it } from "vitest";
import type { Evidence } from "../../simulation/evidence.ts";
import { brokenInvariants, invariants, judge } from "../../simulation/invariants/index.ts";
import { isStuckByStalls } from "../../simulation/invariants/journal.ts";
import { remembered } from "../../simulation/invariants/rewound.ts";
import type { Plan } from "../../simulation/plan.ts";
import { simulate } from "../../simulation/simulate.ts";
import { statsOf } from "../../simulation/stats.ts";
import { canary } from "../../simulation/strangers.ts";
import { addJudged, neverJudged, nothingJudged } from "../../simulation/suite.ts";
import { sweeperName } from "../../simulation/sweeper.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import { startWallMs } from "../../testkit/kit/virtual-time.ts";
import { calm } from "./calm.ts";
import { eventful, spoiled, trial } from "./spoiled.ts";
import { calmBuilds, spoiledBuilds } from "./spoiled-builds.ts";
import { generationsWorld, spoiledGenerations } from "./spoiled-generations.ts";
import { spoiledObjects } from "./spoiled-objects.ts";
import { spoiledRetention } from "./spoiled-retention.ts";
import { scopedWorld, spoiledScopes } from "./spoiled-scopes.ts";
import { calmShards, spoiledShards } from "./spoiled-shards.ts";
import { spoiledSinks } from "./spoiled-sinks.ts";

describe("the invariants", () => {
  let evidence: Evidence;
  let rewound: Evidence;
  let busy: Evidence;
  /** Invariants that were seen to fail. */
  const failed = new Set<string>();
  const faultsOf = (of: Evidence, name: string): readonly string[] => invariants[name]!(remembered(of)).faults;
  const fails = (of: Evidence, name: string): void => {
    assert.notDeepEqual(faultsOf(of, name), [], name);
    failed.add(name);
  };

  beforeAll(async () => {
    evidence = await simulate(calm);
    const run = calm.runs[0]!;
    const sleep = { op: "sleep", ms: 9_000 } as const;
    const rewind = { snapshotAtMs: 4_000, atMs: 7_000, awayMs: 500 };
    const sleeper = { ...run, program: { ops: [sleep, { op: "step", fails: false } as const], attempts: 1 } };
    const without = { signals: [], schedules: [], actions: [], guarded: [], unstarted: undefined, talk: undefined };
    rewound = await simulate({ ...calm, ...without, runs: [sleeper], rewind });
    busy = await simulate(eventful);
  });

  it("hold in a calm, in a rewound and in an eventful world", () => {
    assert.deepEqual(brokenInvariants(evidence), []);
    assert.deepEqual(brokenInvariants(rewound), []);
    assert.deepEqual(brokenInvariants(busy), []);
  });

  it.each(Object.entries(spoiled))("%s fails when its evidence is spoiled", (name, spoil) => {
    assert.ok(invariants[name]!(busy).judged > 0, "the invariant judged nothing");
    fails(spoil(busy), name);
  });

  it.each(Object.entries(spoiledSinks))("%s fails when the evidence of a sink is spoiled", (name, spoil) => {
    assert.ok(invariants[name]!(busy).judged > 0, "the invariant judged nothing");
    fails(spoil(busy), name);
  });

  it.each(Object.entries(spoiledRetention))("%s fails when the evidence of retention is spoiled", (name, spoil) => {
    assert.ok(invariants[name]!(busy).judged > 0, "the invariant judged nothing");
    fails(spoil(busy), name);
  });

  it.each(Object.entries(spoiledObjects))("objectsAreLinearizable fails when %s", (_what, spoil) => {
    // Seven handlers and answers, and two keys of which one was also read.
    assert.equal(invariants.objectsAreLinearizable!(busy).judged, 7);
    fails(spoil(busy), "objectsAreLinearizable");
  });

  it("fail when a result came after the signal of its time-out, whether or not its process was paused", () => {
    const [call] = busy.trialCalls.filter(({ run, endedAt }) => run === "trials" && endedAt !== undefined).slice(-1);
    const [replica] = call!.process.split(".").map(Number);
    const pause = { replica: replica!, at: "read", n: 1, edge: "after", kind: "pause", forMs: 5_000 } as const;
    const at = call!.at - startWallMs;
    const paused = { ...busy, faultHits: [...busy.faultHits, { fault: pause, at, boundary: "after read.run" }] };
    const calls = (of: Evidence, more: object): Evidence => ({
      ...of,
      trialCalls: of.trialCalls.map((one) => (one === call ? { ...one, ...more } : one)),
    });
    const longer = { endedAt: call!.at + 5_000 };
    assert.deepEqual(faultsOf(calls(paused, longer), "lateResultsAreDropped"), []);
    fails(calls(busy, longer), "lateResultsAreDropped");
    fails(calls(paused, { ...longer, late: true }), "lateResultsAreDropped");
    fails(calls(paused, { endedAt: call!.at + 6_000 }), "lateResultsAreDropped");
  });

  it("fail when a record lacks its blob, an answer differs on replay, or a lost call is on no bill", async () => {
    const op = { op: "model", name: "model 1", chars: 70_000, usd: 4, cost: 3, ms: 900 } as const;
    const runs = [
      { ...calm.runs[0]!, program: { ops: [op, { op: "sleep", ms: 4_000 } as const], attempts: 1 }, usd: 90 },
    ];
    const without = { signals: [], schedules: [], actions: [], guarded: [], unstarted: undefined, talk: undefined };
    const world = await simulate({ ...calm, ...without, runs });
    assert.deepEqual(brokenInvariants(world), []);
    assert.equal(world.blobs.size, 1);
    const [[name, text]] = [...world.blobs] as [[string, string]];
    fails({ ...world, blobs: new Map() }, "blobsAreWhole");
    fails({ ...world, blobs: new Map([[name, `${text} `]]) }, "blobsAreWhole");
    const { calls, answers } = world.models;
    fails({ ...world, models: { calls, answers: [...answers, { ...answers[0]!, answer: "x" }] } }, "blobsAreWhole");
    fails({ ...world, models: { calls: [...calls, ...calls], answers } }, "lostCallsArePresumed");
  });

  it("fail when a scope, a saga or a detached run does something else than its journal says", async () => {
    const world = await simulate(scopedWorld);
    assert.deepEqual(brokenInvariants(world), []);
    const judged = ["sagaCompensatesExactly", "detachedLives"].map((name) => invariants[name]!(world).judged);
    assert.deepEqual(judged, [1, 1]);
    for (const [what, name, spoil] of spoiledScopes) {
      assert.notDeepEqual(faultsOf(spoil(world), name), [], what);
      failed.add(name);
    }
  });

  it("fail when a generation loses a signal, repeats a draw or a key, or is woken by its history", async () => {
    const world = await simulate(generationsWorld);
    assert.deepEqual(brokenInvariants(world), []);
    const names = ["drawsAreUnique", "signalsAreNotSkipped", "wakeIsBounded"];
    const judged = names.map((name) => invariants[name]!(world).judged);
    assert.deepEqual(judged, [4, 4, 8]);
    for (const [what, name, spoil] of spoiledGenerations) {
      assert.notDeepEqual(faultsOf(spoil(world), name), [], what);
      failed.add(name);
    }
  });

  it("fail when an outage fails its run, ends too early, or is called again without an operator", async () => {
    const outage = trial("outage", { fails: 9, giveUpAfterMs: 40_000 });
    const runs = [{ ...calm.runs[0]!, program: { ops: [outage], attempts: 1 } }];
    const without = { signals: [], schedules: [], actions: [], guarded: [], unstarted: undefined, talk: undefined };
    const world = await simulate({ ...calm, ...without, runs, resolver: false, healAtMs: 60_000 });
    assert.deepEqual(faultsOf(world, "outagesPark"), []);
    assert.equal(invariants.outagesPark!(world).judged, 1);
    const at = world.feed.findIndex((one) => one.kind === "step.failed" && one.data.outage?.gaveUp === true);
    const last = world.feed[at]!;
    const changed = (record: FeedRecord): Evidence => ({ ...world, feed: world.feed.with(at, record) });
    fails(changed({ ...last, at: last.at - 1_000 }), "outagesPark");
    fails(changed({ ...last, kind: "step.done", data: { pos: 0, name: "outage", error: "x" } }), "outagesPark");
    fails(changed({ ...last, data: { ...last.data, delayMs: 1 } } as FeedRecord), "outagesPark");
    const call = { ...world.trialCalls.at(-1)!, attempt: 10, at: last.at + 1 };
    fails({ ...world, trialCalls: [...world.trialCalls, call] }, "outagesPark");
  });

  it("fail when a run is STUCK after fewer stalls than three, or its wedged process takes it again", () => {
    const { journal } = busy.feed.find((record) => isStuckByStalls(record))!;
    const once = busy.feed.find((one) => one.journal === journal && one.kind === "term.started" && one.seq > 1)!;
    fails({ ...busy, feed: busy.feed.filter((one) => one !== once) }, "stuckHasReason");
    const wedged = busy.trialCalls.find(({ run }) => run === "wedged")!;
    fails({ ...busy, trialCalls: [...busy.trialCalls, { ...wedged, at: wedged.at + 20_000 }] }, "wedgedLoses");
  });

  it("fail when a body writes after its successor has started", () => {
    const journal = [...evidence.named].find(([, name]) => name === sweeperName)![0];
    const feed = evidence.feed.map((record) =>
      record.journal === journal && record.kind === "term.started"
        ? { ...record, data: { ...record.data, reason: "timeout" as const, previous: undefined } }
        : record,
    );
    const first = evidence.sweeps[0]!;
    const last = evidence.sweeps.at(-1)!;
    const late = { ...first, what: "swept" as const, at: last.at + 1_000 };
    fails({ ...evidence, feed: feed as Evidence["feed"], sweeps: [...evidence.sweeps, late] }, "heldMeansHeld");
    fails({ ...evidence, sweeps: [...evidence.sweeps, late] }, "sweepsAreInOrder");
  });

  it("fail when no alarm covers the agenda, or work stays due without end", async () => {
    const run = calm.runs[0]!;
    const sleep = { op: "sleep", ms: 40_000 } as const;
    const sleeper = { ...run, program: { ops: [sleep, { op: "step", fails: false } as const], attempts: 1 } };
    const wakes = { wakeLoss: 1, wakeDouble: 0, wakeDelayMs: 0 };
    const serverless = { ...wakes, clockOffMs: 0, refused: 0, lost: 0, withinMs: 20_000 };
    const without = { signals: [], schedules: [], actions: [], guarded: [], unstarted: undefined, talk: undefined };
    const world = await simulate({ ...calm, ...without, runs: [sleeper], serverless, healAtMs: 10_000 });
    assert.deepEqual(brokenInvariants(world), []);
    const checks = (more: object): Evidence => ({
      ...world,
      agendaChecks: world.agendaChecks.map((one) => ({ ...one, ...more })),
    });
    assert.ok(world.agendaChecks.length > 20);
    fails(checks({ alarmInMs: Number.POSITIVE_INFINITY }), "alarmCoversAgenda");
    fails(checks({ at: world.healedAt! + 900_000, lateMs: 900_000 }), "everyRunIsFound");
    assert.ok(world.answers.length > 1);
    fails({ ...world, answers: world.answers.map((one) => ({ ...one, held: [3] })) }, "answeredHoldsNothing");
    assert.deepEqual(faultsOf({ ...world, callsAtRest: 0 }, "storeRests"), []);
    fails({ ...world, callsAtRest: 1 }, "storeRests");
  });

  it("fail when two bodies share a token or a process", () => {
    const first = evidence.sweeps[0]!;
    fails({ ...evidence, sweeps: [first, { ...first, process: "9.9" }] }, "oneBodyForAToken");
    fails({ ...evidence, sweeps: [first, { ...first, token: first.token + 1n }] }, "oneBodyInAProcess");
    fails({ ...evidence, sweeps: [{ ...first, token: 77n }] }, "bodiesHaveTerms");
  });

  it("fail when a payload that was encrypted is stored in clear", async () => {
    const world = await simulate({ ...calm, neighbours: { actions: [], walks: [] }, codec: true });
    assert.deepEqual(brokenInvariants(world), []);
    const { hidden, rows } = world.sealed!;
    assert.ok(invariants.payloadsAreSealed!(world).judged > 3, "it judged nothing");
    fails({ ...world, sealed: { hidden, rows: `${rows} ${[...hidden][0]}` } }, "payloadsAreSealed");
  });

  it("fail when a shard has two owners or none, or replicas have uneven shares", async () => {
    const without = { signals: [], schedules: [], actions: [], guarded: [], unstarted: undefined, talk: undefined };
    const world = await simulate({ ...calm, ...without, singleton: undefined, shards: calmShards, healAtMs: 90_000 });
    assert.deepEqual(brokenInvariants(world), []);
    for (const [name, spoil] of spoiledShards) {
      assert.ok(invariants[name]!(world).judged > 0, `${name} judged nothing`);
      fails(spoil(world), name);
    }
  });

  it("fail when a process of another build gets a pinned run, or such a run does not end", async () => {
    const without = { signals: [], schedules: [], actions: [], guarded: [], unstarted: undefined, talk: undefined };
    const world = await simulate({ ...calm, ...without, singleton: undefined, builds: calmBuilds, healAtMs: 40_000 });
    assert.deepEqual(brokenInvariants(world), []);
    for (const [name, spoil] of spoiledBuilds) {
      assert.ok(invariants[name]!(world).judged >= 4, `${name} judged nothing`);
      fails(spoil(world), name);
    }
  });

  it("fail when a firing is lost, early, overlapping or during a pause", () => {
    const scheduled = evidence.runs.filter(({ labels }) => labels.schedule === "tick");
    assert.ok(scheduled.length >= 4);
    const [, second] = [...scheduled].sort((a, b) => a.createdAt - b.createdAt);
    fails({ ...evidence, runs: evidence.runs.filter((run) => run !== second) }, "firingsAreNotLost");
    const early = evidence.runs.map((run) => (run === second ? { ...run, createdAt: run.createdAt - 5_000 } : run));
    fails({ ...evidence, runs: early }, "firingsMatchCron");
    const history = evidence.schedules[0]!;
    const moved = history.did.map((one) => (one.what === "pause" ? { ...one, to: one.to - 5_000 } : one));
    fails({ ...evidence, schedules: [{ ...history, did: moved }] }, "pausedSchedulesStay");
    const skipping = { ...history, plan: { ...history.plan, overlap: "skip" as const } };
    const long = evidence.runs.map((run) =>
      labelled(run) ? { ...run, endedAt: (run.endedAt ?? run.createdAt) + 9_000 } : run,
    );
    fails({ ...evidence, runs: long, schedules: [skipping] }, "overlapPolicyHolds");
  });
  const labelled = (run: Evidence["runs"][number]): boolean => run.labels.schedule === "tick";

  it("fail when a read value was never written or a watcher misses one", () => {
    const values = evidence.values.map((one) =>
      one.input.op === "read" && one.output !== undefined && one.output !== "conflict"
        ? { ...one, output: { ...one.output, value: "never written" } }
        : one,
    );
    fails({ ...evidence, values }, "valuesAreLinearizable");
    const [seen = []] = evidence.watched;
    assert.ok(seen.length > 2);
    fails({ ...evidence, watched: [seen.filter((_, k) => k !== 1)] }, "watchersSeeAll");
  });

  it("fail when a quota admits too many, too few, or miscounts", () => {
    const [starts, ...others] = evidence.quotas;
    assert.deepEqual([starts!.fresh, starts!.refused, starts!.used.runs], [2, ["runs", "runs"], 2]);
    fails({ ...evidence, quotas: [{ ...starts!, fresh: 3, open: 3 }, ...others] }, "quotasHold");
    fails({ ...evidence, quotas: [{ ...starts!, open: 1 }, ...others] }, "quotasLeaveRoom");
    fails({ ...evidence, quotas: [{ ...starts!, other: ["TAPE_INVARIANT"] }] }, "quotasLeaveRoom");
    fails({ ...evidence, quotas: [{ ...starts!, open: 1 }] }, "quotasAreCounted");
    fails({ ...evidence, quotas: [{ ...starts!, schedules: 1 }] }, "quotasAreCounted");
    const { counted, found } = evidence.measured!;
    assert.ok(counted !== null && counted > 100);
    fails({ ...evidence, measured: { counted: counted - 1, found } }, "quotasAreCounted");
  });

  it("fail when a paged list misses, repeats or leaks an item", () => {
    const [walk] = evidence.walks;
    assert.ok(walk!.seen.length > 2 && walk!.after.length > walk!.before.length);
    const walked = (changed: object): Evidence => ({ ...evidence, walks: [{ ...walk!, ...changed }] });
    fails(walked({ seen: walk!.seen.slice(1) }), "walksAreWhole");
    fails(walked({ seen: [...walk!.seen, walk!.seen[0]!] }), "walksAreWhole");
    fails(walked({ foreign: walk!.seen.slice(0, 1) }), "walksAreWhole");
  });

  it("fail when a deletion erases too little or too much", () => {
    const [kept, deleted] = evidence.keptValues;
    assert.deepEqual([kept!.found.length, deleted!.found[0]?.deleted], [1, true]);
    fails({ ...evidence, keptValues: [{ ...kept!, found: [] }] }, "deletionsErase");
    const [log] = evidence.valueLogs;
    const logged = (found: readonly object[]): Evidence => ({
      ...evidence,
      valueLogs: [{ key: log!.key, found: found as (typeof log & object)["found"] }],
    });
    fails(logged([]), "deletionsErase");
    fails(logged(log!.found.slice(1)), "deletionsErase");
    fails(logged(log!.found.toSpliced(1, 1)), "deletionsErase");
    fails(logged([...log!.found, { ...log!.found.at(-1), deleted: true }]), "deletionsErase");
    fails(logged(log!.found.with(0, { ...log!.found[0]!, value: "never written" })), "deletionsErase");
  });

  it("fail when a request fence admits an old token or refuses the newest", () => {
    assert.ok(evidence.fenceEvents.some(({ what }) => what === "admitted"));
    const event = (token: bigint, what: Evidence["fenceEvents"][number]["what"]) => ({ token, what });
    const of = (...fenceEvents: Evidence["fenceEvents"]): Evidence => ({ ...evidence, fenceEvents });
    assert.deepEqual(
      faultsOf(of(event(1n, "arrived"), event(1n, "admitted"), event(1n, "admitted")), "requestFencesKeepOrder"),
      [],
    );
    fails(of(event(2n, "admitted"), event(2n, "done"), event(1n, "admitted")), "requestFencesKeepOrder");
    fails(of(event(1n, "admitted"), event(2n, "admitted")), "requestFencesKeepOrder");
    fails(of(event(2n, "arrived"), event(2n, "refused")), "requestFencesKeepOrder");
  });

  it("fail when an action has no audit entry or an entry has no action", () => {
    assert.equal(evidence.actions.filter(({ at }) => at !== undefined).length, 2);
    fails({ ...evidence, audit: evidence.audit.slice(1) }, "actionsAreAudited");
    fails({ ...evidence, actions: evidence.actions.slice(1) }, "actionsAreAudited");
  });

  it("fail when an audit entry is changed, moved or unsealed", () => {
    const [newest, ...older] = evidence.audit;
    assert.ok(older.length > 0);
    fails({ ...evidence, audit: [newest!, { ...older[0]!, reason: "another" }, ...older.slice(1)] }, "auditIsSealed");
    fails({ ...evidence, audit: older.toReversed().concat(newest!) }, "auditIsSealed");
    fails({ ...evidence, audit: evidence.audit.map((entry) => ({ ...entry, hash: "" })) }, "auditIsSealed");
  });

  it("fail when a stranger gets a result or leaves data", () => {
    assert.deepEqual(
      evidence.strangers.map(({ got }) => got),
      ["TAPE_FENCED", "TAPE_RUN_NOT_FOUND", "nothing"],
    );
    assert.ok(evidence.strangers.some(({ current }) => current));
    const [first] = evidence.strangers;
    fails({ ...evidence, strangers: [{ ...first!, got: "a result: head" }] }, "strangersGetNothing");
    const feed = evidence.feed.map((record) =>
      record.kind === "step.done" ? { ...record, data: { ...record.data, name: canary } } : record,
    );
    fails({ ...evidence, feed: feed as Evidence["feed"] }, "strangersChangeNothing");
  });

  it("fail when a non-approver or an invalid value answers a gate", () => {
    assert.deepEqual(
      evidence.guarded.map(({ result }) => result),
      ["TAPE_NOT_APPROVER", "sent", "sent"],
    );
    const signals = (more: object): Evidence["feed"] =>
      evidence.feed.map((record) =>
        record.kind === "signal.sent" ? ({ ...record, data: { ...record.data, ...more } } as FeedRecord) : record,
      );
    fails({ ...evidence, feed: signals({ by: "eve" }) }, "onlyApproversAnswer");
    fails({ ...evidence, feed: signals({ key: "guarded 0" }) }, "onlyApproversAnswer");
    fails({ ...evidence, feed: signals({ value: "many" }) }, "unfitSignalsAreRefused");
    fails({ ...evidence, feed: signals({ value: 7 }) }, "unfitSignalsAreRefused");
    const early = [...evidence.feed].sort((a, b) => Number(a.in === "journal") - Number(b.in === "journal"));
    fails({ ...evidence, feed: early }, "onlyApproversAnswer");
  });

  it("fail when a started run ends as if it had never started", () => {
    const { journal, status } = evidence.runs.find(({ id }) => id === "unstarted")!;
    assert.equal(status, "CANCELLED");
    const step = { kind: "step.done", data: { pos: 0, name: "step", value: 1 } } as const;
    const feed = evidence.feed.flatMap((record) =>
      record.journal === journal && record.kind === "run.ended"
        ? [{ ...record, ...step } as FeedRecord, { ...record, seq: record.seq + 1 }]
        : [record],
    );
    fails({ ...evidence, feed }, "unstartedDidNothing");
  });

  it("fail when a fork keeps a compensated effect", () => {
    const { journal } = evidence.runs[0]!;
    const by = "operator 7";
    const fork = { journal: 77, pos: 1, through: 9, by, reason: "why", seeds: [] };
    const settled = { kind: "effect.settled", data: { pos: 0, to: "CONFIRMED", reason: "returned" } };
    const kept = { kind: "fork.kept", data: { records: [settled] } };
    const feed = evidence.feed.flatMap((record) =>
      record.journal === journal && record.kind === "run.created"
        ? [{ ...record, data: { ...record.data, fork } }, { ...record, ...kept } as unknown as FeedRecord]
        : [record],
    );
    const compensated = {
      run: 77,
      pos: 0,
      sub: 1,
      role: "compensation",
      surplus: false,
      name: "compensate",
      status: "COMPENSATED",
    };
    const effects = [compensated] as unknown as Evidence["effects"];
    const actions = [{ who: by, what: "fork unnamed", requestedAt: 0, at: 1 }];
    fails({ ...evidence, feed: feed as Evidence["feed"], effects, actions }, "forksKeepWhatStands");
  });

  it("fail when a clock step shortens a sleep", async () => {
    const [run] = calm.runs;
    const nap = { ...run!, program: { ops: [{ op: "sleep", ms: 8_000 } as const], attempts: 1 } };
    const world: Plan = { ...calm, runs: [nap], signals: [], guarded: [], schedules: [], actions: [], values: [] };
    const stepped = await simulate({ ...world, wallStep: { atMs: 3_000, byMs: 86_400_000 } });
    assert.deepEqual(brokenInvariants(stepped), []);
    const early = stepped.feed.map((record) =>
      record.kind === "sleep.ended" || record.kind === "timer.fired" ? { ...record, at: record.at - 1_000 } : record,
    );
    fails({ ...stepped, feed: early }, "timersNeverEarly");
  });

  it("fail when a lane gets a result recorded elsewhere", () => {
    const { laneResults } = evidence;
    assert.ok(laneResults.some(({ called }) => !called));
    const [first] = laneResults;
    for (const result of [{ lane: "lane 1", turn: 0 }, { lane: "lane 0", turn: 1 }, { lane: "lane 0" }, null]) {
      fails({ ...evidence, laneResults: [{ ...first!, lane: "lane 0", turn: 0, result }] }, "lanesKeepTheirAnswers");
    }
    const stats = statsOf(evidence);
    assert.deepEqual(
      [stats.laneCalls, stats.laneReplays],
      [laneResults.length, laneResults.filter(({ called }) => !called).length],
    );
  });

  it("fail when a request counts twice", () => {
    assert.equal(evidence.client.keylessSignals.length, 1);
    const twice: FeedRecord[] = [];
    for (const record of evidence.feed) twice.push(...(record.kind === "signal.sent" ? [record, record] : [record]));
    fails({ ...evidence, feed: twice }, "requestsCountOnce");
    const never = evidence.feed.filter((record: FeedRecord) => record.kind !== "signal.sent");
    fails({ ...evidence, feed: never }, "requestsCountOnce");
  });

  it("fail when no record is written for too long", () => {
    fails({ ...evidence, settledAt: evidence.healedAt! + 3_600_000 }, "livenessHolds");
  });

  it("fail when a rewound store repeats a token or takes an old write", () => {
    const at = rewound.feed.findIndex(({ kind, data }) => kind === "store.restored" && data.epoch > 0);
    const since = (make: (token: bigint) => bigint): Evidence["feed"] =>
      rewound.feed.map((record, k) =>
        k > at && record.token > 0n ? { ...record, token: make(record.token) } : record,
      );
    fails({ ...rewound, feed: since((token) => token % 2n ** 40n) }, "restoredTokensAreNew");
    fails({ ...rewound, feed: since(() => 3n) }, "restoreFences");
  });

  it("excuse a lost acknowledgement only within the lost interval", () => {
    const gone = { what: "run", run: "gone" } as const;
    const { from, to } = rewound.lost!;
    const withAck = (requestedAt: number, at: number): Evidence => ({
      ...rewound,
      client: { ...rewound.client, acknowledged: [{ ...gone, requestedAt, at }] },
    });
    assert.deepEqual(brokenInvariants(withAck(from + 1, to - 1)), []);
    fails(withAck(from - 100, from - 50), "acknowledgedIsPresent");
    fails(withAck(to + 100, to + 150), "acknowledgedIsPresent");
  });

  it("excuse one object that the store may have lost, and no other", () => {
    const { from, to } = rewound.lost!;
    const [text, run, known] = ["keyless 0", "run-0", { acknowledged: true }];
    const sent = (requestedAt: number, answeredAt: number): Evidence => ({
      ...rewound,
      client: {
        ...rewound.client,
        keylessSignals: [{ ...known, run, text, requestedAt, answeredAt }],
      },
    });
    assert.deepEqual(faultsOf(sent(from, to), "requestsCountOnce"), []);
    fails(sent(from - 100, from - 50), "requestsCountOnce");
    fails(sent(to + 100, to + 150), "requestsCountOnce");

    const read = (requestedAt: number, answeredAt: number): Evidence => {
      const output = { version: 1, value: "never written" };
      const call = { input: { op: "read", key: "z" } as const, output, requestedAt, answeredAt };
      const values = [1, 3].map((k) => ({ ...call, call: k, ret: k + 1 }));
      return { ...rewound, values };
    };
    fails(read(to + 100, to + 150), "valuesAreLinearizable");
    fails(read(from - 100, from - 50), "valuesAreLinearizable");
    // The lost operations form a history of their own, which must have an order too.
    fails(read(from + 1, to - 1), "valuesAreLinearizable");
    assert.equal(invariants.valuesAreLinearizable!(read(to + 100, to + 150)).judged, 1);
    assert.equal(invariants.valuesAreLinearizable!(read(from + 1, to - 1)).judged, 2);

    const put = { op: "put", key: "z", value: 1, when: "unconditional" } as const;
    const gone = (requestedAt: number, answeredAt: number): Evidence => ({
      ...rewound,
      values: [{ call: 1, ret: 2, input: put, output: { version: 1 }, requestedAt, answeredAt }],
      valueLogs: [{ key: "z", found: [] }],
    });
    assert.deepEqual(faultsOf(gone(from + 1, to - 1), "deletionsErase"), []);
    fails(gone(from - 100, from - 50), "deletionsErase");
    fails(gone(to + 100, to + 150), "deletionsErase");

    const seen = (...versions: number[]): Evidence => {
      const key = "x";
      const change = (version: number) => ({ key, version, previous: version - 1, value: version, deleted: false });
      return { ...rewound, watched: [versions.map(change)] };
    };
    assert.deepEqual(faultsOf(seen(1, 2, 5, 6), "watchersSeeAll"), []);
    fails(seen(1, 2, 5, 7), "watchersSeeAll");
  });

  it("judge schedules of a rewound store too", () => {
    const { lost } = rewound;
    const [, second] = evidence.runs.filter(labelled).sort((a, b) => a.createdAt - b.createdAt);
    const runs = evidence.runs.filter((run) => run !== second);
    fails({ ...evidence, lost, runs }, "firingsAreNotLost");
    const history = evidence.schedules[0]!;
    const skipping = { ...history, plan: { ...history.plan, overlap: "skip" as const } };
    const long = evidence.runs.map((run) => (labelled(run) ? { ...run, endedAt: null } : run));
    fails({ ...evidence, lost, runs: long, schedules: [skipping] }, "overlapPolicyHolds");
  });

  it("excuse a body whose admission the store has lost, and no other", () => {
    const crowded = spoiled.slotsHold!(busy);
    const { run } = crowded.insideEvents[1]!;
    const { journal } = busy.runs.find(({ id }) => id === run)!;
    const [gone, kept] = [true, false].map((own) => busy.feed.filter((one) => (one.journal === journal) === own));
    const lost = { from: 0, to: 1, feed: gone! };
    assert.deepEqual(faultsOf({ ...crowded, feed: kept!, lost }, "slotsHold"), []);
    fails({ ...crowded, feed: kept!, lost: { ...lost, feed: [] } }, "slotsHold");
    fails({ ...crowded, lost }, "slotsHold");
  });

  it("excuse the effect of a paused sender, and no other", () => {
    const paused = (of: Evidence, at: (call: Evidence["calls"][number]) => boolean): Evidence => ({
      ...of,
      calls: of.calls.map((call) => (at(call) ? { ...call, requestedAt: call.at - 1 } : call)),
    });
    const quiet = spoiled.fencedOwnersStayQuiet!(busy);
    const { journal } = busy.runs.find(({ id }) => id === "in doubt")!;
    const { key } = busy.effects.find(({ run }) => run === journal)!;
    assert.deepEqual(
      faultsOf(
        paused(quiet, (call) => call.key === key),
        "fencedOwnersStayQuiet",
      ),
      [],
    );
    fails(
      paused(quiet, (call) => call.key !== key),
      "fencedOwnersStayQuiet",
    );

    const compensation = busy.effects.find(({ role, semantics, status }) => {
      return role === "compensation" && semantics === "non_idempotent" && status === "COMPENSATED";
    })!;
    const done = busy.world.find((one) => one.key === compensation.key)!;
    const twice = { ...busy, world: [...busy.world, done] };
    assert.deepEqual(
      faultsOf(
        paused(twice, (call) => call.key === compensation.key),
        "nonIdempotentOnce",
      ),
      [],
    );
    fails(
      paused(twice, (call) => call.key !== compensation.key),
      "nonIdempotentOnce",
    );
  });

  it("each fail in a test above", () => {
    assert.deepEqual([...failed].sort(), Object.keys(invariants).sort());
  });

  it("count what they judged, and are listed when that is nothing", () => {
    const { judged } = judge(evidence);
    assert.equal(judged.lanesKeepTheirAnswers, evidence.laneResults.length);
    assert.deepEqual([judged.restoreFences, judged.restoredTokensAreNew, judged.budgetsHold], [0, 0, 0]);
    assert.deepEqual(neverJudged({ judged: nothingJudged }), Object.keys(invariants));
    const all = addJudged(addJudged(judged, judge(busy).judged), judge(rewound).judged);
    assert.equal(all.runIdsAreUnique, evidence.runs.length + busy.runs.length + rewound.runs.length);
    // These worlds have loops, and neither shards, nor a fork, nor an outage, nor models, nor scopes, nor a schedule whose runs must not overlap.
    const without = [
      "outagesPark",
      "blobsAreWhole",
      "lostCallsArePresumed",
      "alarmCoversAgenda",
      "answeredHoldsNothing",
      "everyRunIsFound",
      "forksKeepWhatStands",
      "overlapPolicyHolds",
      "payloadsAreSealed",
      "pinnedRunsEnd",
      "pinnedStays",
      "scopesAgree",
      "sagaCompensatesExactly",
      "detachedLives",
    ];
    const generations = ["drawsAreUnique", "wakeIsBounded"];
    const shards = ["oneOwnerForAShard", "shardsAreHeld", "shardsAreFair"];
    assert.deepEqual(neverJudged({ judged: all }).sort(), [...without, ...generations, ...shards].sort());
  });
});
