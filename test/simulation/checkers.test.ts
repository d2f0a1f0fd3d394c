import { strict as assert } from "node:assert";
import { beforeAll, describe, it } from "vitest";
import type { Evidence } from "../../simulation/evidence.ts";
import { figuresOf } from "../../simulation/figures.ts";
import { brokenInvariants, invariants, judge } from "../../simulation/invariants/index.ts";
import { remembered } from "../../simulation/invariants/rewound.ts";
import type { Plan } from "../../simulation/plan.ts";
import { simulate } from "../../simulation/simulate.ts";
import { canary } from "../../simulation/strangers.ts";
import { addJudged, neverJudged, nothingJudged } from "../../simulation/suite.ts";
import { sweeperName } from "../../simulation/sweeper.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import { calm } from "./calm.ts";
import { eventful, spoiled } from "./spoiled.ts";

describe("the checkers", () => {
  let evidence: Evidence;
  let rewound: Evidence;
  let busy: Evidence;
  /** Invariants that were made to complain. */
  const shown = new Set<string>();
  const faultsOf = (of: Evidence, name: string): readonly string[] => invariants[name]!(remembered(of)).faults;
  const complains = (of: Evidence, name: string): void => {
    assert.notDeepEqual(faultsOf(of, name), [], name);
    shown.add(name);
  };

  beforeAll(async () => {
    evidence = await simulate(calm);
    const run = calm.runs[0]!;
    const act = { op: "sleep", ms: 9_000 } as const;
    const rewind = { snapshotAtMs: 4_000, atMs: 7_000, awayMs: 500 };
    const sleeper = { ...run, program: { ops: [act, { op: "step", fails: false } as const], attempts: 1 } };
    const without = { signals: [], schedules: [], deeds: [], guarded: [], unbegun: undefined };
    rewound = await simulate({ ...calm, ...without, runs: [sleeper], rewind });
    busy = await simulate(eventful);
  });

  it("find nothing in a calm world, nor in one that went back, nor in an eventful one", () => {
    assert.deepEqual(brokenInvariants(evidence), []);
    assert.deepEqual(brokenInvariants(rewound), []);
    assert.deepEqual(brokenInvariants(busy), []);
  });

  it.each(Object.entries(spoiled))("see where it does not hold: %s", (name, spoil) => {
    assert.ok(invariants[name]!(busy).judged > 0, "it judged nothing");
    complains(spoil(busy), name);
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
    complains({ ...evidence, feed: feed as Evidence["feed"], sweeps: [...evidence.sweeps, late] }, "heldMeansHeld");
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
    complains({ ...evidence, runs: evidence.runs.filter((run) => run !== second) }, "firingsAreNotLost");
    const early = evidence.runs.map((run) => (run === second ? { ...run, createdAt: run.createdAt - 5_000 } : run));
    complains({ ...evidence, runs: early }, "firingsMatchCron");
    const story = evidence.schedules[0]!;
    const moved = story.did.map((one) => (one.what === "pause" ? { ...one, to: one.to - 5_000 } : one));
    complains({ ...evidence, schedules: [{ ...story, did: moved }] }, "pausedSchedulesStay");
    const skipping = { ...story, plan: { ...story.plan, overlap: "skip" as const } };
    const long = evidence.runs.map((run) =>
      labelled(run) ? { ...run, endedAt: (run.endedAt ?? run.createdAt) + 9_000 } : run,
    );
    complains({ ...evidence, runs: long, schedules: [skipping] }, "overlapPolicyHolds");
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
    assert.deepEqual(faultsOf(of(knock(1n, "came"), knock(1n, "in"), knock(1n, "in")), "requestFencesKeepOrder"), []);
    complains(of(knock(2n, "in"), knock(2n, "out"), knock(1n, "in")), "requestFencesKeepOrder");
    complains(of(knock(1n, "in"), knock(2n, "in")), "requestFencesKeepOrder");
    complains(of(knock(2n, "came"), knock(2n, "refused")), "requestFencesKeepOrder");
  });

  it("see a manual action without its entry in the audit, and an entry that nobody made", () => {
    assert.equal(evidence.deeds.filter(({ at }) => at !== undefined).length, 2);
    complains({ ...evidence, audit: evidence.audit.slice(1) }, "actionsAreAudited");
    complains({ ...evidence, deeds: evidence.deeds.slice(1) }, "actionsAreAudited");
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
    complains({ ...evidence, feed }, "unstartedDidNothing");
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
    complains({ ...stepped, feed: early }, "timersNeverEarly");
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
    complains({ ...evidence, settledAt: evidence.healedAt! + 3_600_000 }, "livenessHolds");
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

  it("excuse the object that the store may have forgotten, and judge its neighbours", () => {
    const { from, to } = rewound.lost!;
    const [text, run, known] = ["said 0", "run-0", { acknowledged: true }];
    const said = (asked: number, answered: number): Evidence => ({
      ...rewound,
      client: { ...rewound.client, said: [{ ...known, run, text, asked, answered }] },
    });
    assert.deepEqual(faultsOf(said(from, to), "requestsCountOnce"), []);
    complains(said(from - 100, from - 50), "requestsCountOnce");
    complains(said(to + 100, to + 150), "requestsCountOnce");

    const read = (asked: number, answered: number): Evidence => {
      const output = { version: 1, value: "never written" };
      const call = { input: { op: "read", key: "z" } as const, output, asked, answered };
      const values = [1, 3].map((k) => ({ ...call, call: k, ret: k + 1 }));
      return { ...rewound, values };
    };
    complains(read(to + 100, to + 150), "valuesAreLinearizable");
    complains(read(from - 100, from - 50), "valuesAreLinearizable");
    // What was forgotten was true while it lasted: it has an order of its own.
    complains(read(from + 1, to - 1), "valuesAreLinearizable");
    assert.equal(invariants.valuesAreLinearizable!(read(to + 100, to + 150)).judged, 1);
    assert.equal(invariants.valuesAreLinearizable!(read(from + 1, to - 1)).judged, 2);

    const put = { op: "put", key: "z", value: 1, when: "unconditional" } as const;
    const gone = (asked: number, answered: number): Evidence => ({
      ...rewound,
      values: [{ call: 1, ret: 2, input: put, output: { version: 1 }, asked, answered }],
      valueLogs: [{ key: "z", found: [] }],
    });
    assert.deepEqual(faultsOf(gone(from + 1, to - 1), "deletionsErase"), []);
    complains(gone(from - 100, from - 50), "deletionsErase");
    complains(gone(to + 100, to + 150), "deletionsErase");

    const seen = (...versions: number[]): Evidence => {
      const key = "x";
      const change = (version: number) => ({ key, version, previous: version - 1, value: version, deleted: false });
      return { ...rewound, watched: [versions.map(change)] };
    };
    assert.deepEqual(faultsOf(seen(1, 2, 5, 6), "watchersSeeAll"), []);
    complains(seen(1, 2, 5, 7), "watchersSeeAll");
  });

  it("look at a schedule also where the store went back", () => {
    const { lost } = rewound;
    const [, second] = evidence.runs.filter(labelled).sort((a, b) => a.createdAt - b.createdAt);
    const runs = evidence.runs.filter((run) => run !== second);
    complains({ ...evidence, lost, runs }, "firingsAreNotLost");
    const story = evidence.schedules[0]!;
    const skipping = { ...story, plan: { ...story.plan, overlap: "skip" as const } };
    const long = evidence.runs.map((run) => (labelled(run) ? { ...run, endedAt: null } : run));
    complains({ ...evidence, lost, runs: long, schedules: [skipping] }, "overlapPolicyHolds");
  });

  it("excuse the act whose sender was stopped, and no other", () => {
    const stopped = (of: Evidence, at: (call: Evidence["calls"][number]) => boolean): Evidence => ({
      ...of,
      calls: of.calls.map((call) => (at(call) ? { ...call, asked: call.at - 1 } : call)),
    });
    const quiet = spoiled.fencedOwnersStayQuiet!(busy);
    const { journal } = busy.runs.find(({ id }) => id === "doubted")!;
    const { key } = busy.effects.find(({ run }) => run === journal)!;
    assert.deepEqual(
      faultsOf(
        stopped(quiet, (call) => call.key === key),
        "fencedOwnersStayQuiet",
      ),
      [],
    );
    complains(
      stopped(quiet, (call) => call.key !== key),
      "fencedOwnersStayQuiet",
    );

    const inverse = busy.effects.find(({ role, semantics, status }) => {
      return role === "compensation" && semantics === "non_idempotent" && status === "COMPENSATED";
    })!;
    const done = busy.world.find((one) => one.key === inverse.key)!;
    const twice = { ...busy, world: [...busy.world, done] };
    assert.deepEqual(
      faultsOf(
        stopped(twice, (call) => call.key === inverse.key),
        "nonIdempotentOnce",
      ),
      [],
    );
    complains(
      stopped(twice, (call) => call.key !== inverse.key),
      "nonIdempotentOnce",
    );
  });

  it("each complain somewhere above", () => {
    assert.deepEqual([...shown].sort(), Object.keys(invariants).sort());
  });

  it("count what they judged, and are called idle where that is nothing", () => {
    const { judged } = judge(evidence);
    assert.equal(judged.lanesKeepTheirAnswers, evidence.handed.length);
    assert.deepEqual([judged.restoreFences, judged.restoredTokensAreNew, judged.budgetsHold], [0, 0, 0]);
    assert.deepEqual(neverJudged({ judged: nothingJudged }), Object.keys(invariants));
    const all = addJudged(addJudged(judged, judge(busy).judged), judge(rewound).judged);
    assert.equal(all.runIdsAreUnique, evidence.runs.length + busy.runs.length + rewound.runs.length);
    // These worlds have neither a fork nor a schedule whose runs must not overlap.
    assert.deepEqual(neverJudged({ judged: all }), ["forksKeepWhatStands", "overlapPolicyHolds"]);
  });
});
