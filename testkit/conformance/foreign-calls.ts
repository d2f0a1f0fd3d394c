import { strict as assert } from "node:assert";
import type { NewDeadLetter } from "../../src/model/dead-letter.ts";
import { TapeError } from "../../src/model/errors.ts";
import { type Fence, makeFence } from "../../src/model/fence.ts";
import type { AcquireRequest } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { claimant, nonce, record, request, scheduleSpec, spec, step } from "./frame.ts";
import { lasting } from "./holder.ts";

/** Every way to name a journal of another tenant. */
const targetsOf = (of: NamedThings) => [
  { run: of.run },
  { name: of.name },
  { journal: of.journal },
  { journal: of.item },
  { journal: of.nameJournal },
];

/**
 * Foreign credentials: every call of the contract, made by one tenant with another's runs, journals, tokens, nonces,
 * owners, cursors and keys. Each call must respond exactly as for things that do not exist, and must change nothing of
 * the other tenant. The table is typed by the contract: a new call without a case does not compile.
 */

/** Everything of a tenant that a call can name. */
export interface NamedThings {
  readonly run: string;
  readonly journal: number;
  readonly head: number;
  readonly item: number;
  readonly name: string;
  readonly nameJournal: number;
  /** The lease is that of this sink, which has refused this event. */
  readonly sink: string;
  readonly event: string;
  readonly key: string;
  readonly schedule: string;
  readonly queue: string;
  readonly queuedRun: string;
  readonly build: string;
  readonly businessKey: string;
  readonly apiToken: string;
  readonly callback: string;
  readonly cursor: string | undefined;
  readonly audit: string;
  readonly owner: string;
  readonly nonce: bigint;
  readonly nameNonce: bigint;
  readonly token: bigint;
}

/** The call by `me` about the things of `of`. A string instead gives the reason why the call has no tenant. */
export type Case<G> = ((calls: G, me: string, of: NamedThings, store: Store) => Promise<unknown>) | string;
type Table = {
  readonly [G in "intake" | "claim" | "fenced" | "read"]: { readonly [M in keyof Store[G]]: Case<Store[G]> };
};

export const audit = { by: "eve", reason: "drill" };
export const secret = "secret-canary";
/** One after another: the result of the first must not depend on chance. */
async function all(calls: readonly (() => Promise<unknown>)[]): Promise<unknown[]> {
  const outcomes: unknown[] = [];
  for (const call of calls) outcomes.push(await outcomeOf(call()));
  return outcomes;
}

const taking = (
  of: NamedThings,
  target: AcquireRequest["target"],
  more: Partial<AcquireRequest> = {},
): AcquireRequest => request(target, { claimant: claimant(of.owner, lasting), nonce: of.nonce, ...more });

/** Records with which the holder of its own run reaches into a journal that it names. */
const reaching = ({ journal, item, head: _head }: NamedThings): NewRecord[] => [
  record("run.ended", { status: "COMPLETED", outcome: 1, notesTaken: 0, parent: { journal, pos: 0, id: "x" } }),
  record("budget.reserved", { pos: 0, rootRun: journal, amounts: { usd: 1 } }),
  record("budget.charged", { pos: 0, rootRun: journal, spent: { usd: 1 }, reserved: {} }),
  record("effect.dispatched", { run: journal, pos: 0, attempt: 1, sendWithinMs: 1_000 }),
  record("effect.settled", { run: journal, pos: 0, to: "FAILED", reason: "definite", error: "no" }),
  record("effect.settled", { run: item, pos: 0, to: "FAILED", reason: "definite", error: "no" }),
  record("obligation.armed", { run: journal, pos: 0, sub: 1, name: "u", semantics: "idempotent", key: "k", args: 1 }),
  record("obligation.settled", { run: journal, pos: 0, sub: 1, to: "COMPENSATED", reason: "returned" }),
];

/** The fences of the other tenant's run and of its sink, in one's own name. */
const foreignFences = (me: string, of: NamedThings): Fence[] => [
  makeFence(me, of.nameJournal, 1n, of.nameNonce),
  makeFence(me, of.journal, of.token, of.nonce),
];

/** A refused event about this journal. */
/** The first of two chunks. */
export const blobPart = { blob: "b10b".repeat(16), n: 0, chunks: 2, text: "stolen" };

export const letter = (event: string, journal: number): NewDeadLetter => ({
  ...{ event, journal, seq: 1, inbox: false, kind: "run.created", attempts: 3, code: "400", error: secret },
});

export const table: Table = {
  intake: {
    createRuns: (intake, me, of) =>
      all([
        () => intake.createRuns(me, [{ id: of.run, workflow: "w", input: 1 }]),
        () =>
          intake.createRuns(me, [{ id: `${of.run}/2`, workflow: "w", input: 1 }], {
            ...claimant(of.owner, lasting),
            nonce: of.nonce,
          }),
        () =>
          intake.createRuns(me, [
            {
              ...spec({ id: "forked", forkedFrom: of.run }),
              fork: { journal: of.journal, pos: 0, through: 1, by: "eve", reason: "mine", seeds: [] },
            },
          ]),
      ]),
    reportBuild: (intake, me, of) => intake.reportBuild(me, of.build, ["w"]),
    setCurrentBuild: (intake, me, of) => intake.setCurrentBuild(me, of.build, { by: "eve", reason: "mine" }),
    streamToken: (intake, me, of) => intake.streamToken(me, of.run, "tokens", 60_000),
    signal: (intake, me, of) =>
      all([
        () => intake.signal(me, of.run, { name: "s", value: 1 }),
        () => intake.signal(me, of.run, { name: "s", value: 1, key: "sent" }),
        () => intake.signal(me, of.run, { name: "s", value: 1, asks: true }),
      ]),
    deliver: (intake, me, of) =>
      all([
        () => intake.deliver(me, of.callback, { value: 1 }),
        () => intake.deliver(me, `${of.journal}.9.${"x".repeat(43)}`, { value: 1 }),
      ]),
    cancel: (intake, me, of) => intake.cancel(me, of.run, { reason: "r", key: "sent" }),
    leaveEvidence: (intake, me, of) =>
      intake.leaveEvidence(me, { run: of.journal, pos: 2, token: of.token, nonce: of.nonce }, { happened: true }),
    fireTimer: (intake, me, of) => intake.fireTimer(me, { run: of.journal, pos: 1, purpose: "gate_timeout" }),
    putValue: (intake, me, of) =>
      all([
        () => intake.putValue(me, of.key, 2, { version: 1 }),
        () => intake.putValue(me, of.key, 2, "must_create"),
        () => intake.putValue(me, of.key, 3, "unconditional"),
      ]),
    deleteValue: (intake, me, of) => intake.deleteValue(me, of.key, 1),
    putSchedule: (intake, me, of) => {
      const row = { id: of.schedule, spec: scheduleSpec(), nextAt: null, paused: false };
      return all([
        () => intake.putSchedule(me, row, { version: 1, spec: scheduleSpec(secret) }),
        () => intake.putSchedule(me, row, null),
      ]);
    },
    putQueue: (intake, me, of) => intake.putQueue(me, of.queue, { counts: "started", concurrency: 1 }),
    changeQueue: (intake, me, of) => intake.changeQueue(me, of.queue, { concurrency: 1 }, audit),
    resetQueue: (intake, me, of) => intake.resetQueue(me, of.queue, audit),
    pauseQueue: (intake, me, of) =>
      all([
        () => intake.pauseQueue(me, of.queue, true, audit),
        () => intake.pauseQueue(me, of.queue, true, audit, of.key),
      ]),
    settleLetters: (intake, me, of) => {
      const settle = (sink: string, to: "REPLAY" | "DISCARDED", events?: string[]) => () =>
        intake.settleLetters(me, sink, to, events, audit);
      return all([settle(of.sink, "REPLAY"), settle(of.sink, "DISCARDED", [of.event])]);
    },
    deleteSchedule: (intake, me, of) => intake.deleteSchedule(me, of.schedule),
    fireSchedule: (intake, me, of) => intake.fireSchedule(me, of.schedule, 1, null, [spec({ id: "fired" })]),
    requestRetention: (intake, me) => intake.requestRetention(me, audit),
    eraseRun: (intake, me, of) =>
      all([() => intake.eraseRun(me, of.run, audit), () => intake.eraseRun(me, of.run, { ...audit, tree: true })]),
    prune: (intake, me) => intake.prune(me, Number.MAX_SAFE_INTEGER, 10),
    setQuota: "only the operator of the store sets limits, for a named tenant",
    putToken: "its id is random, made by the server, and unique in the store",
    revokeToken: (intake, me, of) => intake.revokeToken(me, of.apiToken, audit),
    recordAudit: (intake, me, of) => intake.recordAudit(me, "mine", audit, { run: of.run, journal: of.journal }),
    touchToken: "a token is known by its id before it is known whose it is",
    reportProcess: (intake, me, of) => intake.reportProcess(me, { owner: of.owner, label: "eve", body: {} }),
    removeProcess: (intake, me, of) => intake.removeProcess(me, of.owner),
  },
  claim: {
    acquire: (claim, me, of) =>
      all(
        [
          taking(of, { run: of.run }),
          taking(of, { journal: of.journal }),
          taking(of, { journal: of.item }),
          taking(of, { journal: of.nameJournal }, { nonce: of.nameNonce }),
          taking(of, { name: of.name }, { nonce: of.nameNonce }),
          taking(of, { journal: of.journal }, { expect: { owner: of.owner, token: of.token } }),
          taking(of, { journal: of.journal }, { expect: "any", by: "eve", auditReason: "mine" }),
        ].map((acquire) => () => claim.acquire(me, acquire)),
      ),
    find: (claim, me, of) =>
      all(
        [of.nonce, of.nameNonce, nonce()].flatMap((number) =>
          ["outbox", "recovery", "none"].map(
            (nextReactor) => () =>
              claim.find({
                ...{ claimant: claimant(of.owner, lasting), nextReactor, staleOf: ["agent", "outbox"], limit: 9 },
                ...{ nonce: number, tenant: me, preload: { withinMs: 3_600_000, limit: 9 } },
              }),
          ),
        ),
      ),
    renew: (claim, me, of) =>
      claim.renew(
        [of.journal, of.item, of.nameJournal].map((journal) => ({
          ...{ fence: makeFence(me, journal, of.token, journal === of.nameJournal ? of.nameNonce : of.nonce) },
          ...{ progress: 9, progressNote: "mine" },
        })),
      ),
    callbackSecret: (claim, me, of) => claim.callbackSecret(makeFence(me, of.journal, of.token, of.nonce)),
    pause: (claim, me, of) => claim.pause(me, of.name, true, "eve", "mine"),
    restored: "it is the whole store that is put back",
  },
  fenced: {
    checkpoint: (fenced, me, of) => all(foreignFences(me, of).map((fence) => () => fenced.checkpoint(fence, "stolen"))),
    deadLetter: (fenced, me, of) =>
      all(foreignFences(me, of).map((fence) => () => fenced.deadLetter(fence, letter(of.event, of.journal)))),
    letterSent: (fenced, me, of) => all(foreignFences(me, of).map((fence) => () => fenced.letterSent(fence, of.event))),
    appendChunks: (fenced, me, of) =>
      all(
        foreignFences(me, of).flatMap((fence) =>
          [0, 1].map(
            (from) => () =>
              fenced.appendChunks([
                [fence, { streams: [{ name: "tokens", from, chunks: [{ part: 0, value: "stolen" }] }] }],
              ]),
          ),
        ),
      ),
    putBlob: (fenced, me, of) =>
      all(foreignFences(me, of).map((fence) => () => fenced.putBlob(fence, { ...blobPart, n: 1 }))),
    append: (fenced, me, of) => {
      const fence = makeFence(me, of.journal, of.token, of.nonce);
      const entries = [
        [step(9)], // plain
        [step(9), step(10)],
        [record("sleep.ended", { pos: 1, fired: true })],
        [record("term.ended", { reason: "released", notesTaken: 0 })],
        [record("run.ended", { status: "COMPLETED", outcome: "stolen", notesTaken: 0 })],
        [record("gate.opened", { pos: 9, name: "g" })],
        [record("value.written", { key: of.key, version: 2, value: "stolen" })],
        [record("run.stuck", { reason: "mine" })],
      ];
      const fences = [fence, makeFence(me, of.nameJournal, 1n, of.nameNonce)];
      return all(
        fences.flatMap((one) => entries.map((records) => () => fenced.append(one, { after: of.head, records }))),
      );
    },
    async appendAll(fenced, me, of, store) {
      const own = await store.intake.createRuns(me, [spec({ id: "own", budget: { usd: 5 } })], {
        ...claimant("mine", lasting),
        nonce: nonce(),
      });
      const [made] = own;
      assert.ok(made?.ok && made.term);
      const { fence } = made.term;
      const stolen = makeFence(me, of.journal, of.token, of.nonce);
      // Together with an append of its own in one call: each gets its own result. Then records that reach into other
      // journals.
      const verdicts: unknown[] = [
        await fenced.appendAll([
          [stolen, { after: of.head, records: [step(9)] }],
          [fence, { after: 1, records: [step(0)] }],
        ]),
      ];
      for (const one of reaching(of)) verdicts.push(await fenced.appendAll([[fence, { after: 2, records: [one] }]]));
      return verdicts;
    },
  },
  read: {
    run: (read, me, of) => read.run(me, of.run),
    runs: (read, me, of) =>
      all([
        () => read.runs(me),
        () => read.runs(me, { label: { key: "of", value: secret } }),
        () => read.runs(me, { below: of.journal }),
        () => read.runs(me, { before: of.journal }),
        () => read.runs(me, { prefix: of.run }),
        () => read.runs(me, { inDoubt: true }),
      ]),
    progress: (read, me, of) => read.progress(me, [of.run]),
    deadLetters: (read, me, of) => read.deadLetters(me, of.sink),
    subjects: (read, me, of) => read.subjects(me, [of.journal, of.item, of.nameJournal]),
    sinks: (read, me) => read.sinks(me),
    retention: (read, me) => read.retention(me, 86_400_000),
    archived: (read, me, of) => all([() => read.archived(me), () => read.archived(me, { id: of.run })]),
    queues: (read, me) => read.queues(me),
    builds: (read, me, of) => all([() => read.builds(me), () => read.builds(me, { build: of.build })]),
    buildRuns: (read, me, of) => read.buildRuns(me, of.build),
    isDrained: (read, me, of) => read.isDrained(me, of.build),
    queuePartitions: (read, me, of) => read.queuePartitions(me, of.queue),
    queueSlots: (read, me, of) => read.queueSlots(me, of.queue),
    queuePosition: (read, me, of) => read.queuePosition(me, of.queuedRun),
    journal: (read, me, of) =>
      all(
        [
          { run: of.run },
          { name: of.name },
          { journal: of.journal },
          { journal: of.item },
          { journal: of.nameJournal },
        ].flatMap((target) => [() => read.journal(me, target), () => read.journal(me, target, { inbox: true })]),
      ),
    effects: (read, me, of) =>
      all([
        () => read.effects(me),
        () => read.effects(me, { run: of.run }),
        () => read.effects(me, { item: of.item }),
        () => read.effects(me, { root: of.journal }),
      ]),
    gates: (read, me, of) => all([() => read.gates(me), () => read.gates(me, { run: of.run })]),
    timers: (read, me, of) => all([() => read.timers(me), () => read.timers(me, { run: of.run })]),
    dueTimers: (read, me) => read.dueTimers(10, me),
    agenda: (read, me) => read.agenda(me),
    unserved: (read, me) => read.unserved([], 0, me),
    schedules: (read, me) => read.schedules(me),
    dueSchedules: (read, me) => read.dueSchedules(10, me),
    budgets: (read, me, of) => read.budgets(me, of.run),
    spend: (read, me) => read.spend(me),
    rate: (read, me) => read.rate(me, 1, 1_000, 2),
    businessKeyOwner: (read, me, of) => read.businessKeyOwner(me, "wire", of.businessKey),
    published: (read, me, of) =>
      all([() => read.published(me, of.run), () => read.published(me, of.run, { name: "progress" })]),
    reply: (read, me, of) => read.reply(me, of.run, 1),
    chunks: (read, me, of) => read.chunks(me, [{ run: of.run, stream: "tokens", from: 0 }]),
    streams: (read, me, of) => read.streams(me, of.run),
    blob: (read, me, of) => all(targetsOf(of).map((one) => () => read.blob(me, one, blobPart.blob, 0))),
    streamParts: (read, me, of) => read.streamParts(me, of.run, "tokens"),
    streamAccess: "the token is the right, and names its tenant",
    value: (read, me, of) => read.value(me, of.key),
    values: (read, me, of) => all([() => read.values(me, ""), () => read.values(me, of.key)]),
    valueHistory: (read, me, of) => read.valueHistory(me, of.key, 0),
    lease: (read, me, of) => all(targetsOf(of).map((target) => () => read.lease(me, target))),
    leases: (read, me) => all([() => read.leases(me), () => read.leases(me, { held: true })]),
    terms: (read, me, of) => all(targetsOf(of).map((target) => () => read.terms(me, target))),
    feed: (read, me, of) => all([() => read.feed(undefined, 10, me), () => read.feed(of.cursor, 10, me)]),
    due: (read, me) => read.due("recovery", 10, me),
    census: (read, me) => read.census(me),
    frontier: (read, me) => read.frontier(me).then(({ length }) => length),
    audit: (read, me, of) => all([() => read.audit(me), () => read.audit(me, { before: of.audit })]),
    token: "a token is known by its id before it is known whose it is",
    tokens: (read, me) => read.tokens(me),
    quota: (read, me) => read.quota(me),
    quotas: "only the operator of the store reads all tenants",
    processes: (read, me) => read.processes(me),
    settings: "what the store says of itself",
    now: "what the store says of itself",
  },
};

/** The outcome of a call, rejected or not, as a value. */
export async function outcomeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    return error;
  }
}
