import type { Clock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { AcquireRequest, AcquireResult, RenewRequest, RenewResult, Term } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import type { RecordData } from "../../model/records.ts";
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
import type { SqlBackend } from "../sql/backend.ts";
import {
  type Plan,
  type PlanContext,
  type Query,
  type QueryResult,
  query,
  queryRow,
  queryRows,
  runPlan,
} from "../sql/plan.ts";
import { appendPlan } from "../sql/plans/append.ts";
import { acquirePlan, claimFoundPlan, renewPlan } from "../sql/plans/claim.ts";
import { createPlan, type FirstTerm } from "../sql/plans/create.ts";
import { feedPlan } from "../sql/plans/feed.ts";
import { parseCursor } from "../validate/arguments.ts";
import type { CheckedEntry } from "../validate/entry.ts";
import type { WakeHub } from "../wake-hub.ts";
import type { Times } from "./statement.ts";
import { answer } from "./statements.ts";
import type { Tables } from "./tables.ts";

export interface MemoryDriverOptions {
  readonly tables: Tables;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly wakes: WakeHub;
}

/**
 * Writes gather during a turn of the event loop and are carried out at its end, in order, each a transaction of its own:
 * no caller can depend on an effect before its answer, and one that awaits in a loop does not starve heartbeats.
 *
 *   open ──close──▶ closed (refuses everything; what was submitted before is still carried out)
 */
export class MemoryDriver implements SqlBackend {
  readonly backend = "memory" as const;
  readonly feedParts = 1 as const;
  readonly transactionBoundMs = 0; // a transaction never outlives a turn
  readonly exclusive = true; // nobody else has these tables
  readonly limits: Limits;
  readonly #options: MemoryDriverOptions;
  readonly #tail = new FeedTail();
  #queue: (() => void)[] = [];
  #queueBytes = 0;
  #closed = false;
  /** How far the wall clock was ahead of the machine's own when the store was opened. */
  readonly #anchor: number;

  constructor(options: MemoryDriverOptions) {
    this.#options = options;
    this.#anchor = Math.floor(options.clock.wall() - upOf(options.clock));
    this.limits = options.limits;
  }

  write<T>(make: (context: PlanContext) => Plan<T>, _tenant?: string, bytes = 0): Promise<T> {
    const { pendingItems, pendingBytes } = this.limits;
    if (this.#closed) return Promise.reject(closed());
    if (this.#queue.length >= pendingItems || this.#queueBytes + bytes > pendingBytes) {
      return Promise.reject(new TapeError("TAPE_OVERLOADED", `${this.#queue.length} writes wait for their turn`));
    }
    this.#queueBytes += bytes;
    return new Promise<T>((resolve, reject) => {
      this.#enqueue(() => {
        try {
          resolve(this.#transact(make));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  async read<T>(plan: Plan<T>): Promise<T> {
    if (this.#closed) throw closed();
    return this.#run(plan);
  }

  append(fence: Fence, entry: CheckedEntry): Promise<AppendResult> {
    return this.write((context) => appendPlan(context, fence, entry), fence.tenant, entry.bytes);
  }

  create(tenant: string, data: RecordData<"run.created">, first: FirstTerm | undefined): Promise<CreateResult> {
    return this.write((context) => createPlan(context, tenant, data, first));
  }

  /** No transaction stays open across a turn of the event loop: there is nothing to starve behind. */
  preempt<T>(make: (context: PlanContext) => Plan<T>): Promise<T> {
    return this.write(make);
  }

  acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult> {
    return this.write((context) => acquirePlan(context, tenant, request));
  }

  async take(journals: readonly number[], request: FindRequest): Promise<Term[]> {
    const terms = journals.map((journal) => this.write(() => claimFoundPlan(journal, request)));
    return (await Promise.all(terms)).filter((term) => term !== undefined);
  }

  renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]> {
    return this.write(function* () {
      const verdicts: RenewResult[] = [];
      for (const renewal of renewals) verdicts.push(yield* renewPlan(renewal));
      return verdicts;
    });
  }

  async feed(cursor: string | undefined, limit: number, tenant: string | undefined): Promise<FeedPage> {
    return this.read(feedPlan(parseCursor(cursor), limit, tenant, { limits: this.limits, tail: this.#tail }));
  }

  async audit(before: string | undefined, limit: number, tenant: string | undefined): Promise<AuditEntry[]> {
    const params = { before: parseCursor(before, Number.MAX_SAFE_INTEGER), limit, tenant: tenant ?? null };
    const rows = await this.read(queryRows(tenant === undefined ? "audit.all" : "audit.page", params));
    return rows.map(auditEntryOf);
  }

  async health(): Promise<StoreHealth> {
    if (this.#closed) throw closed();
    return {};
  }

  async settings(): Promise<StoreSettings> {
    const row = await this.read(queryRow("meta.get"));
    const facts = { exclusive: this.exclusive, storeId: String(row?.store_id) };
    return { schema: 0, epoch: Number(row?.epoch), durable: false, facts };
  }

  onWake(listener: (wake: WakeHint) => void): () => void {
    return this.#options.wakes.on(listener);
  }

  close(): Promise<void> {
    this.#closed = true;
    return new Promise((resolve) => this.#enqueue(resolve));
  }

  #enqueue(job: () => void): void {
    if (this.#queue.push(job) === 1) this.#options.clock.immediate(() => this.#flush());
  }

  #flush(): void {
    const jobs = this.#queue;
    this.#queue = [];
    this.#queueBytes = 0;
    for (const job of jobs) job();
  }

  /** Wakes are sent once nothing can take the transaction back. */
  #transact<T>(make: (context: PlanContext) => Plan<T>): T {
    const { tables, wakes } = this.#options;
    const sent: WakeHint[] = [];
    const context: PlanContext = {
      limits: this.limits,
      locksRelease: false,
      allocate: () => Number(this.#run(query("journals.block", { size: 1 })).rows[0]?.first),
      wake: (wake) => sent.push(wake),
    };
    const value = tables.undo.transaction(() => this.#run(make(context)));
    for (const wake of sent) wakes.emit(wake);
    return value;
  }

  #run<T>(plan: Plan<T>): T {
    const { tables, clock } = this.#options;
    const steady = Math.floor(upOf(clock)) + this.#anchor;
    const times: Times = { at: Math.floor(clock.wall()), now: Math.floor(clock.mono()), steady };
    return runPlan(plan, (call: Query): QueryResult => answer(tables, call, times));
  }
}

const upOf = (clock: Clock): number => clock.up?.() ?? clock.mono();

function closed(): TapeError {
  return new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");
}
