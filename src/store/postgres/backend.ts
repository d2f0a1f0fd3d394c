import type { Clock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { AcquireRequest, AcquireResult, RenewRequest, RenewResult, Term } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import type { JournalRecord, RecordData } from "../../model/records.ts";
import type {
  AppendResult,
  AuditEntry,
  CreateResult,
  FeedPage,
  FindRequest,
  Page,
  StoreHealth,
  StoreSettings,
  WakeHint,
} from "../contract/store.ts";
import { auditEntryOf } from "../decode-rows.ts";
import type { CallerTransactions, SqlBackend } from "../sql/backend.ts";
import {
  awaitPlan,
  type Plan,
  type PlanContext,
  type Query,
  type QueryResult,
  query,
  queryRow,
  queryRows,
} from "../sql/plan.ts";
import { wakeOf } from "../sql/plans/append.ts";
import { acquirePlan, type ClaimRequest, claimFoundPlan } from "../sql/plans/claim.ts";
import { createPlan, type FirstTerm } from "../sql/plans/create.ts";
import type { TimerRef } from "../sql/plans/intake.ts";
import { appendChunksPlan } from "../sql/plans/streams.ts";
import { describeBlocker, positionBehind, StampFeed } from "../sql/stamp-feed.ts";
import type { ParamsOf, RowOf } from "../sql/statements.gen.ts";
import { parseCursor } from "../validate/arguments.ts";
import { type CheckedEntry, isSleepEnd } from "../validate/entry.ts";
import type { CheckedChunks } from "../validate/streams.ts";
import type { WakeHub } from "../wake-hub.ts";
import { admitManyPlan } from "./admit-many.ts";
import { appendSpawning, endChild } from "./append-children.ts";
import { appendSingle, type Backlog, createItemOf, creationOf, isEnd, isPark } from "./batched-writes.ts";
import type { BatchedWrites } from "./batchers.ts";
import { isChildEnd } from "./child-writes.ts";
import { claimManyPlan } from "./claim-many.ts";
import type { Connections, PostgresName } from "./connections.ts";
import { readFault, unlessMoving } from "./errors.ts";
import type { JournalAllocator } from "./journal-numbers.ts";
import { type JournalReads, journalReads } from "./journal-reads.ts";
import type { Notifier } from "./notifier.ts";
import type { OutageRetry } from "./outage-retry.ts";
import { renewAll } from "./renewals.ts";
import { SlotHints } from "./slot-hints.ts";
import { StreamHints } from "./stream-writes.ts";
import type { Timeline } from "./timeline.ts";
import type { Writer } from "./writer.ts";

export interface PostgresBackendOptions {
  readonly connections: Connections;
  readonly writer: Writer;
  readonly journals: JournalAllocator;
  readonly batched: BatchedWrites;
  readonly notifier: Notifier;
  readonly wakes: WakeHub;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly schema: number;
  readonly durable: boolean;
  readonly outageRetry: OutageRetry;
  readonly timeline: Timeline;
  readonly callers: CallerTransactions;
}

/** Enough for every run of a queue that a process drives at once. */
const maxQueued = 50_000;

/** How long a takeover waits for open guarded transactions before it announces itself. */
const announceAfterMs = 50;

export class PostgresBackend implements SqlBackend {
  readonly backend = "postgres" as const;
  readonly feedParts = 3 as const;
  readonly exclusive = false;
  readonly limits: Limits;
  readonly transactionBoundMs: number;
  readonly #options: PostgresBackendOptions;
  readonly #feed: StampFeed;
  /** Runs of queues that this process holds: a hint for the choice of a batch. */
  readonly #queued = new Set<number>();
  readonly #slotHints: SlotHints;
  readonly #streamHints: StreamHints;
  readonly #journals: JournalReads;
  #closing: Promise<void> | undefined;

  constructor(options: PostgresBackendOptions) {
    this.#options = options;
    this.limits = options.limits;
    this.#slotHints = new SlotHints(options.clock, (tenant) => options.notifier.send(wakeOf("recovery", tenant)));
    this.#streamHints = new StreamHints(options.clock, (hint) => options.notifier.send(hint));
    this.#feed = new StampFeed(
      (sql, params, tenant) => this.#query(sql, params, tenant),
      options.limits,
      options.clock,
    );
    this.#journals = journalReads({ ...options, read: (plan, tenant) => this.read(plan, tenant) });
    this.transactionBoundMs = options.connections.settings.transactionBoundMs;
  }

  get callers(): CallerTransactions {
    this.#assertOpen();
    return this.#options.callers;
  }

  async write<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T> {
    this.#assertOpen();
    return this.#options.writer.run(make, { tenant });
  }

  /** One round trip for each statement instead of three for a transaction. */
  writeRepeatable<T>(make: () => Plan<T>, tenant?: string): Promise<T> {
    return this.read(make(), tenant);
  }

  async read<T>(plan: Plan<T>, tenant: string | undefined): Promise<T> {
    this.#assertOpen();
    try {
      const { connections, outageRetry } = this.#options;
      return await awaitPlan(plan, (call) => outageRetry.run(() => connections.performAlone(call, tenant)));
    } catch (error) {
      throw readFault(error);
    }
  }

  #query<N extends PostgresName>(name: N, params: ParamsOf<N>, tenant?: string): Promise<QueryResult<RowOf<N>>> {
    const { connections, outageRetry } = this.#options;
    return outageRetry.run(() => connections.ask(name, params, tenant));
  }

  journal = (tenant: string, journal: number): Promise<Page<JournalRecord>> =>
    this.#journals.submit({ tenant, journal });

  async append(fence: Fence, entry: CheckedEntry): Promise<AppendResult> {
    this.#assertOpen();
    const { append, endSleep } = this.#options.batched;
    if (entry.plain) return append.submit({ fence, entry });
    if (isSleepEnd(entry)) return endSleep.submit({ fence, entry });
    if (entry.spawns) return appendSpawning(this.#options, { fence, entry });
    // Whether a run has a queue is not in its fence: one that is not known here takes the other batch, and then its plan.
    const queued = entry.releases && this.#queued.delete(fence.journal);
    if (isEnd(entry)) return this.#end(fence, entry, queued);
    if (isChildEnd(entry) && !queued) return endChild(this.#options, { fence, entry });
    if (isPark(entry)) return this.#park(fence, entry, queued);
    return appendSingle(this.#options.writer, { fence, entry });
  }

  async #end(fence: Fence, entry: CheckedEntry, queued: boolean): Promise<AppendResult> {
    const { end, endQueued } = this.#options.batched;
    const appended = await (queued ? endQueued : end).submit({ fence, entry });
    if (queued) this.#slotHints.freed(fence.tenant);
    return this.#released(fence, undefined, appended);
  }

  async #park(fence: Fence, entry: CheckedEntry, queued: boolean): Promise<AppendResult> {
    const { park, parkQueued } = this.#options.batched;
    const { nextReactor } = entry.records[0]!.data as RecordData<"term.ended">;
    const { backlog, ...appended } = await (queued ? parkQueued : park).submit({ fence, entry });
    if (queued) this.#slotHints.freed(fence.tenant);
    return this.#released(fence, nextReactor, appended, backlog);
  }

  /** Notifies processes that wait for this journal, and the next reactor. */
  #released(fence: Fence, nextReactor: string | undefined, appended: AppendResult, backlog?: Backlog): AppendResult {
    const { notifier } = this.#options;
    if (nextReactor !== undefined)
      notifier.send(
        backlog === undefined
          ? { of: "reactor", reactor: nextReactor }
          : wakeOf(nextReactor, backlog.tenant, backlog.workflow),
      );
    notifier.send({ of: "journal", tenant: fence.tenant, journal: fence.journal });
    return appended;
  }

  async appendChunks(fence: Fence, chunks: CheckedChunks): Promise<object> {
    this.#assertOpen();
    const { batched, writer } = this.#options;
    const { tenant } = fence;
    if (chunks.rewinds)
      return writer.run((context) => appendChunksPlan(context, fence, chunks), { tenant, allocates: false });
    const appended = await batched.stream.submit({ fence, chunks });
    this.#streamHints.written(fence);
    return appended;
  }

  async create(tenant: string, given: RecordData<"run.created">, first: FirstTerm | undefined): Promise<CreateResult> {
    this.#assertOpen();
    const { data, by } = creationOf(given, first !== undefined);
    if (by === "plan") return this.write((context) => createPlan(context, tenant, data, first), tenant);
    const { batched, journals, notifier } = this.#options;
    const queued = by === "queued";
    const { counted, createCounted, createLabelled, createQueued } = batched;
    const unqueued = counted.has(tenant) ? createCounted : data.labels === undefined ? batched.create : createLabelled;
    const batch = queued ? createQueued : unqueued;
    const created = await batch.submit(createItemOf(await journals.one(), tenant, data, queued ? undefined : first));
    if (created.fresh && (queued || first === undefined)) notifier.send(wakeOf("recovery", tenant, data.workflow));
    return created;
  }

  preempt<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T> {
    return this.#takeOver(true, make, tenant);
  }

  acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult> {
    return this.#takeOver(request.expect === "any", (context) => acquirePlan(context, tenant, request), tenant);
  }

  /** Claims all in one transaction that waits for no lock; those missing from its result are claimed alone. */
  async take(journals: readonly number[], request: ClaimRequest): Promise<Term[]> {
    const together = journals.length === 1 ? new Map<number, Term>() : await this.#takeMany(journals, request);
    const terms = journals.map((journal) => {
      return (
        together.get(journal) ??
        this.#takeOver(false, (context) => claimFoundPlan(context, journal, request), request.tenant).catch(
          unlessMoving,
        )
      );
    });
    return this.#noted((await Promise.all(terms)).filter((term) => term !== undefined));
  }

  async admit(queue: string, room: number, request: FindRequest): Promise<Term[]> {
    this.#assertOpen();
    const { writer, timeline } = this.#options;
    await timeline.check();
    const { tenant } = request;
    const { rows } = await this.#query("queue.open", { tenant: tenant!, name: queue }, tenant);
    if (rows.length === 0) return [];
    return this.#noted(
      await writer.run(() => admitManyPlan(request, queue, room), {
        allocates: false,
        ...defined({ tenant }),
      }),
    );
  }

  /** Remembers which of these runs have a queue. */
  #noted(terms: Term[]): Term[] {
    for (const { queue, journal } of terms) if (queue) this.#queued.add(journal);
    if (this.#queued.size > maxQueued) this.#queued.clear();
    return terms;
  }

  async #takeMany(journals: readonly number[], request: ClaimRequest): Promise<Map<number, Term>> {
    this.#assertOpen();
    const { writer, timeline } = this.#options;
    await timeline.check();
    try {
      return await writer.transact(() => claimManyPlan(journals, request), {
        allocates: false,
        tenant: request.tenant,
      });
    } catch {
      return new Map(); // claimed alone, each reports its own error; terms that were granted nevertheless are found by the nonce
    }
  }

  async fire(timer: TimerRef): Promise<boolean> {
    this.#assertOpen();
    const { batched, notifier } = this.#options;
    const { fired, held, backlog } = await batched.fire.submit(timer);
    if (fired && held === false && backlog !== undefined)
      notifier.send(wakeOf("recovery", backlog.tenant, backlog.workflow));
    if (fired && held !== undefined) notifier.send({ of: "journal", tenant: timer.tenant, journal: timer.run });
    return fired;
  }

  /**
   * A takeover must not starve behind overlapping guarded transactions: each holds its key share only briefly, but
   * together they never release it. So the first try is short. Then `doomed` is committed, which needs none of their
   * locks and lets no new one start. Then the takeover itself waits only for those already open.
   */
  async #takeOver<T>(force: boolean, make: (context: PlanContext) => Plan<T>, tenant: string | undefined): Promise<T> {
    this.#assertOpen();
    const { writer, timeline } = this.#options;
    await timeline.check();
    let takeQuery: Query | undefined;
    const onQuery = (call: Query): void => {
      if (call.sql === "lease.take") takeQuery = call;
    };
    try {
      return await writer.transact(make, {
        tenant,
        onQuery,
        waitMs: Math.min(announceAfterMs, this.transactionBoundMs),
      });
    } catch (error) {
      if (error instanceof TapeError) throw error;
      if (takeQuery !== undefined) {
        const { journal, token } = takeQuery.params as ParamsOf<"lease.take">;
        await this.write(() => query("lease.doom", { journal, token, force }), tenant);
      }
      return this.write(make, tenant);
    }
  }

  async renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]> {
    this.#assertOpen();
    // On a promoted server every earlier term is over: the epoch is raised, and each holder learns that it is fenced.
    await this.#options.timeline.check();
    const tenant = renewals[0]?.fence.tenant; // usually one process, and so one call, serves one tenant
    return renewAll(
      { ask: (name, params) => this.#query(name, params, tenant), writer: this.#options.writer },
      renewals,
    );
  }

  async feed(cursor: string | undefined, limit: number, tenant: string | undefined): Promise<FeedPage> {
    this.#assertOpen();
    try {
      const page = await this.#feed.page(cursor, limit, tenant);
      if (page.records.length > 0 || page.more === true || !this.#feed.isHeldBack) return page;
      const blocker = (await this.#query("feed.blocker", {}, tenant)).rows[0];
      return blocker === undefined ? page : { ...page, blockedBy: describeBlocker(blocker) };
    } catch (error) {
      throw readFault(error);
    }
  }

  async frontier(tenant: string | undefined): Promise<string> {
    const row = await this.read(queryRow("feed.frontier"), tenant);
    return positionBehind(Number(row?.id ?? 0));
  }

  async audit(before: string | undefined, limit: number, tenant: string | undefined): Promise<AuditEntry[]> {
    const params = { before: parseCursor(before, Number.MAX_SAFE_INTEGER), limit, tenant: tenant ?? null };
    const rows = await this.read(queryRows(tenant === undefined ? "audit.all" : "audit.page", params), tenant);
    return rows.map(auditEntryOf);
  }

  async health(): Promise<StoreHealth> {
    const blocker = await this.read(queryRow("feed.blocker"), undefined);
    return blocker === undefined || Number(blocker.seconds) < 1 ? {} : { feedBlockedBy: describeBlocker(blocker) };
  }

  async settings(): Promise<StoreSettings> {
    const { connections, schema, durable } = this.#options;
    this.#assertOpen();
    let row: RowOf<"meta.get"> | undefined;
    let replication: RowOf<"store.standbys"> | undefined;
    try {
      row = (await this.#query("meta.get", {})).rows[0];
      replication = (await this.#query("store.standbys", {})).rows[0];
    } catch (error) {
      throw readFault(error);
    }
    return {
      schema,
      epoch: Number(row?.epoch),
      durable,
      facts: {
        serverVersion: Number(row?.server_version),
        fsync: String(row?.fsync),
        synchronousCommit: String(row?.synchronous_commit),
        schemaName: connections.settings.schema,
        pooler: connections.settings.pooler,
        transport: connections.transport,
        storeId: String(row?.store_id),
        synchronousStandbyNames: String(replication?.names),
        standbys: Number(replication?.standbys),
        ...defined({ server: connections.hosts?.server, servers: connections.hosts?.summary }),
      },
    };
  }

  onWake(listener: (wake: WakeHint) => void): () => void {
    this.#options.notifier.listen();
    return this.#options.wakes.on(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { batched, notifier, connections } = this.#options;
    this.#slotHints.close();
    const { counted: _counted, ...batchers } = batched;
    await this.#journals.close();
    await Promise.all(Object.values(batchers).map((batcher: { close(): Promise<void> }) => batcher.close()));
    await notifier.close();
    await connections.close();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");
  }
}
