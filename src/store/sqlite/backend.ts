import { TapeError } from "../../model/errors.ts";
import { type Fence, makeFence } from "../../model/fence.ts";
import type { AcquireRequest, AcquireResult, RenewRequest, RenewResult, Term } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import type { RecordData } from "../../model/records.ts";
import { leaseQueue } from "../../model/slot.ts";
import type {
  AppendResult,
  AuditEntry,
  CreateResult,
  FeedPage,
  FindRequest,
  StoreHealth,
  StoreSettings,
  WakeHint,
} from "../contract/store.ts";
import { auditEntryOf } from "../decode-rows.ts";
import { FeedTail } from "../feed-tail.ts";
import type { CallerTransactions, SqlBackend } from "../sql/backend.ts";
import { type Plan, type PlanContext, type Query, type QueryResult, queryRow, runPlan } from "../sql/plan.ts";
import { admitPlan } from "../sql/plans/admit.ts";
import { appendPlan, appendRetryPlan, refusalOf } from "../sql/plans/append.ts";
import { acquirePlan, type ClaimRequest, claimFoundPlan, renewPlan } from "../sql/plans/claim.ts";
import { createPlan, type FirstTerm } from "../sql/plans/create.ts";
import { feedPlan } from "../sql/plans/feed.ts";
import { PartitionDeltas } from "../sql/plans/partitions.ts";
import { appendChunksPlan } from "../sql/plans/streams.ts";
import { parseCursor } from "../validate/arguments.ts";
import { type CheckedEntry, isSleepEnd } from "../validate/entry.ts";
import type { CheckedChunks } from "../validate/streams.ts";
import type { WakeHub } from "../wake-hub.ts";
import { type ChangeWatch, watchOtherProcesses } from "./change-watch.ts";
import type { Committer } from "./committer.ts";
import { isBusy } from "./database.ts";
import { boundOf, type HeadCache } from "./head-cache.ts";
import type { Session } from "./session.ts";
import type { Times } from "./statements.ts";

export interface SqliteBackendOptions {
  readonly committer: Committer;
  readonly heads: HeadCache;
  readonly wakes: WakeHub;
  readonly limits: Limits;
  readonly exclusive: boolean;
  /** "none": in memory. */
  readonly durability: "full" | "relaxed" | "none";
  readonly schema: number;
  readonly busyMs: number;
  readonly times: () => Times;
  readonly changeWatch: ChangeWatch;
  readonly callers: CallerTransactions;
}

/** The parameters of the fence statement. */
type FenceParams = Readonly<
  Record<"tenant", string> & Record<"journal" | "after", number> & Record<"token" | "nonce", bigint>
>;

/** Journal numbers are taken from the file in blocks of this size. */
const blockSize = 1_000;
/** Few processes hold more leases than this; those that do renew in parts, which costs them little. */
const maxRenewals = 250;

export class SqliteBackend implements SqlBackend {
  readonly backend = "sqlite" as const;
  readonly feedParts = 1 as const;
  readonly limits: Limits;
  readonly transactionBoundMs: number;
  readonly exclusive: boolean;
  readonly callers: CallerTransactions;
  readonly #options: SqliteBackendOptions;
  /** The fence that the current plan has passed. */
  #admitted: { readonly journal: number; readonly token: bigint } | undefined;
  readonly #tail = new FeedTail();
  #nextJournal = 0;
  #journalsLeft = 0;
  /** The transaction that reserved the current block. */
  #blockOf: Session | undefined;
  #plainRunEnd: unknown;

  constructor(options: SqliteBackendOptions) {
    this.#options = options;
    this.limits = options.limits;
    this.exclusive = options.exclusive;
    this.callers = options.callers;
    // A transaction starts and ends in one tick of the event loop: a stopped process cannot be inside one for long. A
    // process stopped in mid-commit blocks the file, and others wait for it this long.
    this.transactionBoundMs = 0;
  }

  write<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T> {
    return this.#options.committer.submit(tenant, (session) => this.#perform(session, make));
  }

  writeRepeatable<T>(make: () => Plan<T>, tenant?: string): Promise<T> {
    return this.write(make, tenant);
  }

  async read<T>(plan: Plan<T>): Promise<T> {
    const times = this.#options.times();
    return this.#retryBusy(() =>
      runPlan(plan, (call) => this.#options.committer.statements.perform(call.sql, call.params, times)),
    );
  }

  /** In WAL mode readers wait only while another process recovers the log. */
  #retryBusy<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      throw new TapeError("TAPE_STORE_BUSY", "the file is being recovered by another process", {}, error);
    }
  }

  append(fence: Fence, entry: CheckedEntry): Promise<AppendResult> {
    const { committer } = this.#options;
    const { bytes, records, releases } = entry;
    const { tenant } = fence;
    // A record that ends a term alone is rejected before its first write, with rare exceptions; others may be rejected
    // midway.
    const atomic = releases && records.length === 1;
    if (isSleepEnd(entry))
      return committer.submit(tenant, (s) => this.#endSleep(s, fence, entry), { atomic: true, bytes });
    if (entry.plain)
      return committer.submit(tenant, (s) => this.#appendPlain(s, fence, entry), { atomic: true, bytes });
    const append = (session: Session) => this.#perform(session, (context) => appendPlan(context, fence, entry));
    return committer.submit(tenant, append, { bytes, atomic });
  }

  /** Checks fence and head once for the entry, then inserts. Everything is checked before the first insert. */
  #appendPlain(session: Session, fence: Fence, entry: CheckedEntry): AppendResult {
    const { journal, token } = fence;
    const { statements, times } = session;
    const head = this.#options.heads.admit(session, fence, entry.after);
    if (head === undefined) return this.#perform(session, () => appendRetryPlan(fence, entry));
    // Items and named leases allow few kinds, and the plan knows which. The plan, too, checks before it writes.
    if (head.kind !== "run") return this.#perform(session, (context) => appendPlan(context, fence, entry));
    const insert = statements.get("record.append").sql;
    session.changed();
    for (const [k, record] of entry.records.entries()) {
      // In the order of the statement's parameters: journal, seq, token, at, kind, body.
      insert.get(journal, entry.after + 1 + k, head.bound, times.at, record.kind, entry.bodies[k]!);
    }
    head.seq = entry.after + entry.records.length;
    session.wrote(journal, head.seq, token);
    return { head: head.seq, notes: head.notes };
  }

  /** Ends a sleep: fires the timer first, which may be rejected, then appends the record. */
  #endSleep(session: Session, fence: Fence, entry: CheckedEntry): AppendResult {
    const { heads } = this.#options;
    const head = heads.admit(session, fence, entry.after);
    if (head?.kind !== "run") return this.#perform(session, (context) => appendPlan(context, fence, entry));
    const { pos } = entry.records[0]!.data as RecordData<"sleep.ended">;
    const timer = { do: "timer.fire", tenant: fence.tenant, run: fence.journal, pos, purpose: "sleep" } as const;
    const { count } = session.statements.run(timer.do, timer, session.times);
    if (count === 0) throw this.#perform(session, () => refusalOf(timer, head.tenant));
    return this.#appendPlain(session, fence, entry);
  }

  appendChunks(fence: Fence, chunks: CheckedChunks): Promise<object> {
    const append = (session: Session) => this.#perform(session, (context) => appendChunksPlan(context, fence, chunks));
    const writes = chunks.streams.reduce((sum, stream) => sum + stream.chunks.length, 0);
    // Fence and offset are checked before the first write; a limit that is exceeded later is rare.
    return this.#options.committer.submit(fence.tenant, append, { bytes: chunks.bytes, writes, atomic: true });
  }

  create(tenant: string, data: RecordData<"run.created">, first: FirstTerm | undefined): Promise<CreateResult> {
    const create = (session: Session): CreateResult => {
      const created = this.#perform(session, (context) => createPlan(context, tenant, data, first));
      // With more than its first record it is an existing run, created by a call whose response was lost.
      if (created.term?.head === 1) this.#options.heads.remember(created.term, true);
      // No other process has its number, unless this transaction reserves it and fails.
      if (created.fresh && this.#blockOf !== session) session.wrote(created.journal, 1, 0n);
      return created;
    };
    // Without a queue the plan is rejected at its first write or not at all: nothing to roll back, so no savepoint is needed.
    return this.#options.committer.submit(tenant, create, { atomic: leaseQueue(data) === null });
  }

  /** No transaction stays open across ticks of the event loop, so there is nothing to starve behind. */
  preempt<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T> {
    return this.write(make, tenant);
  }

  acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult> {
    return this.write((context) => acquirePlan(context, tenant, request), tenant);
  }

  async take(journals: readonly number[], request: ClaimRequest): Promise<Term[]> {
    const { committer, heads } = this.#options;
    const terms = journals.map((journal) =>
      committer.submit(request.tenant, (session) => {
        const term = this.#perform(session, (context) => claimFoundPlan(context, journal, request));
        if (term !== undefined) heads.remember(term, false);
        return term;
      }),
    );
    return (await Promise.all(terms)).filter((term) => term !== undefined);
  }

  async admit(queue: string, room: number, request: FindRequest): Promise<Term[]> {
    const { committer, heads } = this.#options;
    return committer.submit(request.tenant, (session) => {
      const terms = this.#perform(session, () => admitPlan(request, queue, room));
      // A run with only its first record and this term has no effect, gate or child, and its timers are over.
      for (const term of terms) heads.remember(term, term.head === 2 && term.notes === 0);
      return terms;
    });
  }

  /** In parts, each with its own results, so that other writes get their turn in between. */
  async renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]> {
    const renewed: RenewResult[] = [];
    for (let k = 0; k < renewals.length; k += maxRenewals) {
      const part = renewals.slice(k, k + maxRenewals);
      const work = (session: Session): RenewResult[] =>
        part.map((renewal) => this.#perform(session, () => renewPlan(renewal)));
      // Renewals may concern many tenants and keep all of them alive: they get a turn of their own.
      renewed.push(...(await this.#options.committer.submit(undefined, work, { writes: part.length })));
    }
    return renewed;
  }

  async feed(cursor: string | undefined, limit: number, tenant: string | undefined): Promise<FeedPage> {
    return this.read(feedPlan(parseCursor(cursor), limit, tenant, { limits: this.limits, tail: this.#tail }));
  }

  async frontier(): Promise<string> {
    return String((await this.read(queryRow("feed.frontier")))?.id ?? 0);
  }

  async audit(before: string | undefined, limit: number, tenant: string | undefined): Promise<AuditEntry[]> {
    const params = { before: parseCursor(before, Number.MAX_SAFE_INTEGER), limit, tenant: tenant ?? null };
    const { rows } = this.#options.committer.statements.run(
      tenant === undefined ? "audit.all" : "audit.page",
      params,
      this.#options.times(),
    );
    return rows.map(auditEntryOf);
  }

  async health(): Promise<StoreHealth> {
    await this.read(queryRow("meta.get"));
    return {};
  }

  async settings(): Promise<StoreSettings> {
    const { committer, durability, exclusive, schema } = this.#options;
    const row = committer.statements.run("meta.get", {}, this.#options.times()).rows[0];
    return {
      schema,
      epoch: Number(row?.epoch),
      durable: durability === "full",
      facts: {
        ...(durability === "none"
          ? { journalMode: "memory" }
          : { journalMode: "wal", synchronous: durability === "full" ? "full" : "normal" }),
        exclusive,
        storeId: String(row?.store_id),
      },
    };
  }

  onWake(listener: (wake: WakeHint) => void): () => void {
    const stop = this.#options.wakes.on(listener);
    const leave = watchOtherProcesses(this.#options.changeWatch);
    return () => {
      stop();
      leave();
    };
  }

  async close(): Promise<void> {
    await this.#options.committer.close();
  }

  #perform<T>(session: Session, make: (context: PlanContext) => Plan<T>): T {
    this.#admitted = undefined;
    const context = this.#context(session);
    const execute = (call: Query): QueryResult => this.#execute(session, call);
    const result = runPlan(make(context), execute);
    // Not by `withPartitions`: a generator around each plan would cost runs without a queue more than a percent.
    if (!context.partitions.isEmpty) runPlan(context.partitions.flush(), execute);
    return result;
  }

  #execute(session: Session, call: Query): QueryResult {
    if (call.sql === "fence") {
      const { tenant, journal, token, nonce, after } = call.params as FenceParams;
      const head = this.#options.heads.admit(session, makeFence(tenant, journal, token, nonce), after);
      if (head === undefined) return { rows: [], count: 0 };
      this.#admitted = { journal, token };
      return { rows: [{ ...head }], count: 1 };
    }
    const known = this.#knownResult(call);
    if (known !== undefined) return known;
    this.#options.heads.noticeWrite(call);
    if (call.sql === "lease.first") return this.#createFirstTerm(session, call);
    if (session.statements.get(call.sql).statement.role !== "read") session.changed();
    const answer = session.statements.perform(call.sql, call.params, session.times);
    if (call.sql === "record.append") {
      const { journal, seq, token } = call.params as { journal: number; seq: number; token: bigint };
      // Only the holder of a token writes under it. A token issued by this transaction is no witness: if the
      // transaction fails, the next claimant is issued the same one.
      if (this.#admitted?.journal === journal && this.#admitted.token === token) session.wrote(journal, seq, token);
    }
    return answer;
  }

  /** RETURNING would build a temporary table, which costs half the statement's time; the token is known beforehand. */
  #createFirstTerm(session: Session, { sql, params }: Query): QueryResult {
    const token = this.#options.heads.tokenFloor(session) + 1n;
    session.changed();
    session.statements.perform(sql, { ...params, token: boundOf(token) }, session.times);
    return { rows: [{ token }], count: 1 };
  }

  /** A plain run has nothing open and no obligations: both statements of its end would query empty tables. */
  #knownResult({ sql, params }: Query): QueryResult | undefined {
    if (sql === "run.assert_settled") {
      this.#plainRunEnd = this.#options.heads.isPlainRun(params.journal) ? params.journal : undefined;
      if (this.#plainRunEnd !== undefined) return { rows: [{ ok: 1 }], count: 1 };
    }
    // After its record, which drops the head: what was known before still holds in this transaction.
    return sql === "obligations.discharge" && params.run === this.#plainRunEnd ? { rows: [], count: 0 } : undefined;
  }

  #context(session: Session): PlanContext & { readonly partitions: PartitionDeltas } {
    return {
      partitions: new PartitionDeltas(),
      limits: this.limits,
      locksRelease: false,
      allocate: () => this.#allocate(session),
      wake: (wake) => session.afterCommit(() => this.#options.wakes.emit(wake)),
    };
  }

  #allocate(session: Session): number {
    if (this.#journalsLeft === 0) {
      const { rows } = session.statements.run("journals.block", { size: blockSize }, session.times);
      this.#nextJournal = Number(rows[0]?.first);
      this.#journalsLeft = blockSize;
      this.#blockOf = session;
      // After a rollback the block is free again and may be issued to another process: use none of it.
      session.onRollback(() => {
        this.#journalsLeft = 0;
      });
    }
    this.#journalsLeft--;
    return this.#nextJournal++;
  }
}
