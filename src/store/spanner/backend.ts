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
import type { SqlBackend } from "../sql/backend.ts";
import {
  awaitPlan,
  type Plan,
  type PlanContext,
  type Query,
  type QueryResult,
  queryRow,
  queryRows,
} from "../sql/plan.ts";
import { admitPlan } from "../sql/plans/admit.ts";
import { appendPlan } from "../sql/plans/append.ts";
import { acquirePlan, type ClaimRequest, claimFoundPlan, renewPlan } from "../sql/plans/claim.ts";
import { createPlan, type FirstTerm } from "../sql/plans/create.ts";
import { appendChunksPlan } from "../sql/plans/streams.ts";
import { positionBehind, type StampFeed } from "../sql/stamp-feed.ts";
import type { RowOf } from "../sql/statements.gen.ts";
import type { CheckedEntry } from "../validate/entry.ts";
import type { CheckedChunks } from "../validate/streams.ts";
import type { WakeHub } from "../wake-hub.ts";
import { auditCursor, auditPosition } from "./audit-cursor.ts";
import { blockersOf } from "./blockers.ts";
import type { ChangeWatch } from "./change-watch.ts";
import { boundMs, type Connections } from "./connections.ts";
import type { ReadRetry } from "./read-retry.ts";
import type { SpannerSettings } from "./url.ts";
import type { Writer } from "./writer.ts";

export interface SpannerBackendOptions {
  readonly connections: Connections;
  readonly writer: Writer;
  readonly reads: ReadRetry;
  readonly watch: ChangeWatch;
  readonly wakes: WakeHub;
  readonly feed: StampFeed;
  readonly limits: Limits;
  readonly schema: number;
  readonly settings: SpannerSettings;
}

/** Renewals of one transaction: they are sent together, and each is one statement. */
const maxRenewals = 100;

export class SpannerBackend implements SqlBackend {
  readonly backend = "spanner" as const;
  readonly feedParts = 3 as const;
  readonly exclusive = false;
  /** Spanner aborts a transaction that has been idle for this long. */
  readonly transactionBoundMs = boundMs;
  readonly limits: Limits;
  readonly #options: SpannerBackendOptions;
  #closed = false;

  constructor(options: SpannerBackendOptions) {
    this.#options = options;
    this.limits = options.limits;
  }

  async write<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T> {
    this.#assertOpen();
    return this.#options.writer.run(make, tenant);
  }

  writeRepeatable<T>(make: () => Plan<T>, tenant?: string): Promise<T> {
    return this.write(make, tenant);
  }

  /** An older transaction makes younger ones release their locks, so a takeover does not starve behind them. */
  preempt<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T> {
    return this.write(make, tenant);
  }

  async read<T>(plan: Plan<T>, tenant: string | undefined): Promise<T> {
    this.#assertOpen();
    return awaitPlan(plan, (call) => this.#read(call, tenant));
  }

  #read(call: Query, tenant: string | undefined): Promise<QueryResult> {
    const { connections, reads } = this.#options;
    const read = () =>
      call.sql === "slot.blockers" ? blockersOf(connections, call, tenant) : connections.read(call, tenant);
    return reads.run(read);
  }

  append(fence: Fence, entry: CheckedEntry): Promise<AppendResult> {
    return this.write((context) => appendPlan(context, fence, entry), fence.tenant);
  }

  appendChunks(fence: Fence, chunks: CheckedChunks): Promise<object> {
    return this.write((context) => appendChunksPlan(context, fence, chunks), fence.tenant);
  }

  create(tenant: string, data: RecordData<"run.created">, first: FirstTerm | undefined): Promise<CreateResult> {
    return this.write((context) => createPlan(context, tenant, data, first), tenant);
  }

  acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult> {
    return this.write((context) => acquirePlan(context, tenant, request), tenant);
  }

  async take(journals: readonly number[], request: ClaimRequest): Promise<Term[]> {
    const { rooms } = request;
    const taken: Term[] = [];
    for (const journal of journals) {
      // A plan that is repeated must find the same room: it gets a copy, which counts if the plan has committed.
      let left: Map<string, number> | undefined;
      const term = await this.write((context) => {
        left = rooms && new Map(rooms);
        return claimFoundPlan(context, journal, left === undefined ? request : { ...request, rooms: left });
      }, request.tenant);
      if (left !== undefined) for (const [queue, room] of left) rooms!.set(queue, room);
      if (term !== undefined) taken.push(term);
    }
    return taken;
  }

  admit(queue: string, room: number, request: FindRequest): Promise<Term[]> {
    return this.write(() => admitPlan(request, queue, room), request.tenant);
  }

  async renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]> {
    const renewed: RenewResult[] = [];
    for (let k = 0; k < renewals.length; k += maxRenewals) {
      const part = renewals.slice(k, k + maxRenewals);
      const plan = function* (): Plan<RenewResult[]> {
        const results: RenewResult[] = [];
        for (const renewal of part) results.push(yield* renewPlan(renewal));
        return results;
      };
      renewed.push(...(await this.write(plan)));
    }
    return renewed;
  }

  async feed(cursor: string | undefined, limit: number, tenant: string | undefined): Promise<FeedPage> {
    this.#assertOpen();
    return this.#options.feed.page(cursor, limit, tenant);
  }

  async frontier(tenant: string | undefined): Promise<string> {
    const row = await this.read(queryRow("feed.frontier"), tenant);
    return positionBehind(Number(row?.id ?? 0));
  }

  async audit(before: string | undefined, limit: number, tenant: string | undefined): Promise<AuditEntry[]> {
    const at = auditPosition(before);
    if (tenant !== undefined) {
      const rows = await this.read(queryRows("audit.page", { tenant, before: at.n, limit }), tenant);
      return rows.map((row) => ({ ...auditEntryOf(row), cursor: auditCursor(row) }));
    }
    const params = { before: at.at, above: at.tenant, n: at.n, limit };
    const { rows } = await this.#read({ sql: "audit.all", params }, undefined);
    return (rows as readonly RowOf<"audit.all">[]).map((row) => ({ ...auditEntryOf(row), cursor: auditCursor(row) }));
  }

  async health(): Promise<StoreHealth> {
    await this.read(queryRow("meta.get"), undefined);
    return {};
  }

  async settings(): Promise<StoreSettings> {
    const { schema, settings } = this.#options;
    const row = await this.read(queryRow("meta.get"), undefined);
    const facts = { ...settings, storeId: String(row?.store_id) };
    return { schema, epoch: Number(row?.epoch), durable: true, facts };
  }

  onWake(listener: (wake: WakeHint) => void): () => void {
    const { wakes, watch } = this.#options;
    const stop = wakes.on(listener);
    const leave = watch.enter();
    return () => {
      stop();
      leave();
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#options.watch.close();
    await this.#options.connections.close();
  }

  #assertOpen(): void {
    if (this.#closed) throw new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");
  }
}
