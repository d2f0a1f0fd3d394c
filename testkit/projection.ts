import { encode } from "../src/base/codec.ts";
import { isStoreJournal } from "../src/model/journal-numbers.ts";
import {
  changesOf,
  changesOfCreation,
  deadlineTimer,
  encodeBody,
  type RecordContext,
} from "../src/model/projection.ts";
import type { NewRecord, RecordData } from "../src/model/records.ts";
import { isSealedStore } from "../src/seal/sealed-store.ts";
import type { FeedRecord, RunView, Store } from "../src/store/contract/store.ts";
import { foldInSomeOrder, type RecordSink } from "./fold-order.ts";
import { queueCounts, readFeed } from "./projection-feed.ts";
import { firstGeneration } from "./projection-generations.ts";
import { labelRows } from "./projection-labels.ts";
import { queueRows } from "./projection-queues.ts";
import { type RunState, routed, show } from "./projection-rows.ts";
import { actualRun, expectedRun } from "./projection-runs.ts";
import { ProjectionTables } from "./projection-tables.ts";

/**
 * Checks that the tables are the fold of the records. Reads every record through the feed, applies its changes to
 * tables of its own, and compares them with the store's. Returns the differences; none means that the records explain
 * every row. It also finds records that no change explains, and changes whose record is missing.
 *
 * Records are folded in feed order, which on SQLite is commit order. PostgreSQL's feed keeps only the order within each
 * journal: if the fold fails there, another order is searched, and the rows must be those of that order. Call it when
 * the store is idle and the feed has caught up.
 *
 * @example
 * assert.deepEqual(await checkProjection(store, ["acme"]), []);
 */
export async function checkProjection(given: Store, tenants: readonly string[]): Promise<string[]> {
  // A codec opens rows and records in the same way; what the store itself has must agree.
  const store = isSealedStore(given) ? given.sealed.inner : given;
  const { records, tenantOf } = await readFeed(store, tenants);
  const context = { tenantOf, counts: await queueCounts(store, tenants) };
  const { tables, faults } = foldRecords(records, context, store.backend === "postgres");
  for (const tenant of tenants) faults.push(...(await compare(store, tenant, tables)));
  return faults;
}

interface FoldContext {
  readonly tenantOf: ReadonlyMap<number, string>;
  readonly counts: ReadonlyMap<string, string>;
}

/** Folds the records into tables, and lists where they do not fit. `loose`: in any order that the journals allow. */
function foldRecords(records: readonly FeedRecord[], context: FoldContext, loose: boolean) {
  const createFold = () => new Fold(records, context);
  const inFeedOrder = createFold();
  for (const record of records) inFeedOrder.add(record);
  const faults = inFeedOrder.finish();
  // If no order fits, the faults are those of the feed order.
  const fold = (loose && faults.length > 0 && foldInSomeOrder(records, createFold)) || inFeedOrder;
  return { tables: fold.tables, faults: fold === inFeedOrder ? faults : fold.finish() };
}

class Fold implements RecordSink {
  readonly tables: ProjectionTables;
  readonly #faults: string[] = [];
  readonly #tenantOf: ReadonlyMap<number, string>;
  /** Journal numbers that records allocated: the journals they open follow in the feed. */
  readonly #opened = new Map<string, number>();
  /** Runs whose records are gone, so that references to them cannot be checked. */
  readonly #pruned = new Set<string>();
  /** Erased runs: what a run outside their tree has copied of them, or they of it, cannot be compared. */
  readonly #erased = new Set<string>();
  #floor = 0n;

  constructor(records: readonly FeedRecord[], { tenantOf, counts }: FoldContext) {
    this.#tenantOf = tenantOf;
    this.tables = new ProjectionTables(counts);
    for (const { kind, data, journal } of records) {
      if (kind === "item.opened") this.#opened.set(`item ${data.run} ${data.pos} ${data.sub}`, journal);
      if (kind === "run.pruned") this.#pruned.add(`${data.tenant}/${data.id}`);
      if (kind === "run.erased") this.#erased.add(`${data.tenant}/${data.id}`);
      if (kind === "run.created" && data.parent !== undefined) {
        this.#opened.set(`child ${data.parent.journal} ${data.id}`, journal);
      }
      if (kind === "run.created" && data.startedBy !== undefined) {
        this.#opened.set(`detached ${tenantOf.get(journal)} ${data.id}`, journal);
      }
    }
  }

  finish(): string[] {
    for (const [record, left] of this.tables.balance) {
      this.#fault(`${left > 0 ? "missing" : "unexplained"}: ${record}`);
    }
    return this.#faults;
  }

  tryAdd(record: FeedRecord): boolean {
    const before = this.#faults.length;
    this.add(record);
    const fits = this.#faults.length === before;
    this.#faults.length = before;
    if (!fits) this.tables.rollback.rollBack();
    return fits;
  }

  add(record: FeedRecord): void {
    this.tables.rollback.commit();
    const { journal, kind, token, data } = record;
    if (record.in === "inbox") {
      this.#addNote(record);
      return;
    }
    const lease = this.tables.leases.get(journal);
    switch (kind) {
      case "store.restored":
        this.#floor = BigInt(data.epoch) << 40n; // tokens carry the store epoch in their high bits
        for (const [one, { owner }] of this.tables.leases) this.tables.leases.change(one, { doomed: owner !== null });
        return;
      case "run.pruned": {
        const run = [...this.tables.runs.values()].find(({ tenant, id }) => tenant === data.tenant && id === data.id);
        if (run !== undefined) this.tables.forget(run.journal);
        return;
      }
      case "run.erased":
        return; // its records and rows hold the same markers
      case "operator.action":
        if (isStoreJournal(journal)) return; // an operator action on the store itself takes no lease
        break;
      case "lease.named": {
        const tenant = this.#tenantOf.get(journal) ?? "";
        const closed = { notes: 0, open: true, doomed: false, queued: false, maxStallMs: null, ...firstGeneration };
        const blank = { token: 0n, owner: null, nextReactor: null, ...closed };
        this.tables.leases.set(journal, { kind: "name", tenant, run: journal, ...blank });
        return;
      }
      case "item.opened":
        this.#countSeen(record);
        return;
      case "run.created":
        if (data.parent === undefined && !this.#isStarted(journal, data)) this.#create(record, data);
        this.#countSeen(record);
        return;
      case "term.started":
        if (lease === undefined || token <= lease.token) this.#fault(`${where(record)}: its token does not increase`);
        else this.tables.leases.change(journal, { token, owner: data.owner, nextReactor: null, doomed: false });
        if (data.build !== undefined) this.#pin(record, data.build);
        this.#startTerm(record, data);
        return;
      default:
    }
    if (lease === undefined) {
      this.#fault(`${where(record)}: no record opened this journal`);
      return;
    }
    if (token !== lease.token) this.#fault(`${where(record)}: written under ${token}, the term is ${lease.token}`);
    if (kind === "child.started" && this.#pruned.has(`${lease.tenant}/${data.id}`)) return;
    if (kind === "child.started" && data.startedBy !== undefined && this.#isCut(lease.tenant, data)) return;
    // Records do not contain the nonce, so it is not compared.
    const { queued } = lease;
    const none = { nonce: 0n, keepVersions: 0, maxNames: 0, maxUnits: 0, maxLabels: 0 };
    const context = { journal, kind: lease.kind, token, ...none, queued, allocate: this.#allocator(record) };
    this.#apply(record, () => changesOf(record, context, record.seq));
  }

  #apply(record: FeedRecord, changes: () => ReturnType<typeof changesOf>): void {
    try {
      for (const change of changes()) {
        const fault = this.tables.apply(change);
        if (fault !== undefined) this.#fault(`${where(record)}: ${fault}`);
      }
    } catch (error) {
      this.#fault(`${where(record)}: ${(error as Error).message}`);
    }
  }

  /** The record of another run creates it; that of a pruned one is gone. */
  #isStarted(journal: number, { id, startedBy }: RecordData<"run.created">): boolean {
    const tenant = this.#tenantOf.get(journal) ?? "";
    if (startedBy === undefined || this.#pruned.has(`${tenant}/${startedBy}`)) return false;
    return !this.#isCut(tenant, { id, startedBy });
  }

  /** A detached child and its starter are erased one without the other: the child's own record creates it. */
  #isCut(tenant: string, { id, startedBy }: { readonly id: string; readonly startedBy?: string }): boolean {
    return this.#erased.has(`${tenant}/${id}`) || this.#erased.has(`${tenant}/${startedBy}`);
  }

  #create(record: FeedRecord, data: RecordData<"run.created">): void {
    const { journal } = record;
    const none = () => {
      throw new Error("creating a run opens no other journal");
    };
    const start = { token: 0n, nonce: 0n, keepVersions: 0, maxNames: 0, maxUnits: 0, maxLabels: 0 };
    const context: RecordContext = { journal, kind: "run", ...start, queued: false, allocate: none };
    this.#apply(record, () => changesOfCreation(this.#tenantOf.get(journal) ?? "", data, context));
    const lease = this.tables.leases.get(journal);
    if (data.holder !== undefined && lease !== undefined) {
      const token = (lease.token > this.#floor ? lease.token : this.#floor) + 1n;
      this.tables.leases.change(journal, { token, owner: data.holder.owner, nextReactor: null });
    }
  }

  /** The first term of a build pins the run, once. */
  #pin(record: FeedRecord, build: string): void {
    const { journal } = record;
    const known = this.tables.leases.get(journal)?.build;
    if (known !== undefined) this.#fault(`${where(record)}: pins to ${build} a run of ${known}`);
    this.tables.leases.change(journal, { build });
  }

  /** A run of a queue gets its slot with a term; then it does not expire any more. */
  #startTerm(record: FeedRecord, { admitted, reason }: RecordData<"term.started">): void {
    const { journal } = record;
    const fault = this.tables.slots.startTerm(journal, admitted !== undefined, reason);
    if (fault !== undefined) this.#fault(`${where(record)}: ${fault}`);
    if (admitted === undefined) return;
    const timer = { run: journal, pos: 0, purpose: "expire", to: "CANCELLED", required: false } as const;
    this.tables.apply({ do: "timer.status", ...timer });
  }

  /** The journal that this record opened. */
  #allocator(record: NewRecord & { readonly journal: number }): () => number {
    return () => {
      const { data, kind, journal } = record;
      if (kind === "child.started") {
        const detached = `detached ${this.#tenantOf.get(journal)} ${data.id}`;
        const key = data.startedBy === undefined ? `child ${journal} ${data.id}` : detached;
        return this.#opened.get(key) ?? this.#notInFeed();
      }
      const { run = journal, pos, sub = 0 } = data as { run?: number; pos: number; sub?: number };
      return this.#opened.get(`item ${run} ${pos} ${sub}`) ?? this.#notInFeed();
    };
  }

  #notInFeed(): never {
    throw new Error("the journal that it opened is not in the feed");
  }

  #countSeen({ in: inside, journal, kind, data }: FeedRecord): void {
    this.tables.count(inside, { journal, kind, body: encodeBody(data) }, -1);
  }

  #addNote(record: FeedRecord): void {
    const { journal, kind, seq, data } = record;
    const lease = this.tables.leases.get(journal);
    if (lease === undefined || !lease.open) {
      this.#fault(`${where(record)}: its inbox is not open`);
      return;
    }
    const notes = lease.notes + 1;
    if (notes !== seq) this.#fault(`${where(record)}: it should be note ${notes}`);
    // An item that already waits for a reactor keeps waiting for that one.
    const nextReactor = lease.kind === "run" ? routed(lease, "recovery") : (lease.nextReactor ?? "reconciler");
    const free = lease.owner === null && !lease.doomed && !this.tables.slots.isBack(journal);
    this.tables.leases.change(journal, free ? { notes, nextReactor } : { notes });
    if (kind === "signal.sent") this.tables.addSignal(journal, seq);
    const timer =
      kind === "timer.fired" ? data : kind === "cancel.requested" && data.deadline ? deadlineTimer : undefined;
    if (timer !== undefined) {
      const { pos, purpose } = timer;
      const fault = this.tables.apply({ do: "timer.status", run: journal, pos, purpose, to: "FIRED", required: true });
      if (fault !== undefined) this.#fault(`${where(record)}: ${fault}`);
    }
    this.#moveByNote(journal, kind, kind === "timer.fired" ? data.purpose : undefined);
    if (kind !== "child.settled" && kind !== "effect.outcome") return;
    if (kind === "child.settled" && this.#pruned.has(`${lease.tenant}/${data.id}`)) return;
    this.#countSeen(record);
  }

  /** A note may return a run to its queue, or take it out of it. */
  #moveByNote(run: number, kind: string, purpose: string | undefined): void {
    const { slots } = this.tables;
    const before = slots.rows.get(run)?.state;
    const leaves = slots.note(run, kind, purpose) === "leaves";
    // A debounced run that starts or stops takes no further starts.
    const waited = before === "DELAYED" && slots.rows.get(run)?.state !== "DELAYED";
    if (waited) this.tables.apply({ do: "business_key.drop", run, pos: -2 });
    if (!leaves) return;
    if (purpose !== "start") this.tables.apply({ do: "timers.cancel", run });
    this.tables.apply({ do: "lease.wake", journal: run, nextReactor: "recovery", delayMs: 0 });
  }

  #fault(what: string): void {
    this.#faults.push(what);
  }
}

const where = ({ journal, in: inside, seq, kind }: FeedRecord): string => `${inside} ${journal}, ${seq} (${kind})`;

async function compare(store: Store, tenant: string, tables: ProjectionTables): Promise<string[]> {
  const { read } = store;
  const faults: string[] = [];
  const expect = (what: string, found: unknown, expected: unknown) => {
    if (show(found) !== show(expected))
      faults.push(`${what} is ${show(found)}, but its records give ${show(expected)}`);
  };
  const views = await allRuns(store, tenant);
  const runs = [...tables.runs.values()].filter((run) => run.tenant === tenant);
  expect(`the list of ${tenant}'s runs`, views.map(({ journal }) => journal).sort(ascending), keysOf(runs));
  for (const view of views) {
    const run = tables.runs.get(view.journal);
    if (run === undefined) continue; // reported above
    const { id } = view;
    expect(`run ${id}`, actualRun(view), expectedRun(run, tables));
    const effects = (await read.effects(tenant, { run: id })).map(
      ({ tenant: _t, sendUntil: _s, createdAt: _c, changedAt: _h, ...effect }) => effect,
    );
    expect(`the effects of ${id}`, sorted(effects), sorted(tables.effectsOf(run.journal)));
    const gates = (await read.gates(tenant, { run: id })).map(({ tenant: _t, openedAt: _o, ...gate }) => gate);
    expect(`the gates of ${id}`, sorted(gates), sorted(ofRun(tables.gates, run.journal)));
    const published = (await read.published(tenant, id)).map(({ name, value, seq }) => [name, encode(value), seq]);
    const names = ofRun(tables.published, run.journal).map(({ name, value, seq }) => [name, value, seq]);
    expect(`what ${id} published`, sorted(published), sorted(names));
    for (const { note, body } of ofRun(tables.replies, run.journal)) {
      const { n: _n, at: _at, ...reply } = (await read.reply(tenant, id, note)) ?? {};
      expect(`the reply to note ${note} of ${id}`, encode(reply), body);
    }
    const timers = (await read.timers(tenant, { run: id })).map(({ tenant: _t, dueAt: _d, ...timer }) => timer);
    expect(`the timers of ${id}`, sorted(timers), sorted(ofRun(tables.timers, run.journal)));
    expect(`the budgets of ${id}`, sorted(await read.budgets(tenant, id)), sorted(ofRun(tables.budgets, run.journal)));
  }
  for (const [key, { tenant: of, scope, businessKey }] of tables.claimed) {
    if (of !== tenant) continue;
    const found = await read.businessKeyOwner(tenant, scope, businessKey);
    const claim = tables.claims.get(key);
    expect(`the owner of ${scope} ${businessKey}`, found && [found.run, found.pos], claim && [claim.run, claim.pos]);
  }
  for (const [journal, lease] of tables.leases) {
    if (lease.tenant !== tenant) continue;
    const { kind, run, token, owner, nextReactor, maxStallMs, build, begins } = lease;
    const state = tables.slots.rows.get(journal)?.state ?? null;
    const view = await read.lease(tenant, { journal });
    // Without a limit in its records, the term of a run may have one that its claimant declared.
    const limit = maxStallMs === null ? null : view?.maxStallMs;
    const { begins: first = 1 } = view ?? {};
    const shown = view && [view.kind, view.run, view.token, view.owner, view.nextReactor, limit, view.slot, view.build];
    const expected = [kind, run, token, owner, nextReactor, maxStallMs, state, build, begins];
    expect(`the lease of journal ${journal}`, shown && [...shown, first], expected);
  }
  for (const [about, found, expected] of await labelRows(store, tenant, tables)) expect(about, found, expected);
  for (const [about, found, expected] of await queueRows(store, tenant, tables.slots)) expect(about, found, expected);
  return faults;
}

async function allRuns(store: Store, tenant: string): Promise<RunView[]> {
  const views: RunView[] = [];
  for (;;) {
    const before = views.at(-1)?.journal;
    const page = await store.read.runs(tenant, before === undefined ? {} : { before });
    if (page.length === 0) return views;
    views.push(...page);
  }
}

const ascending = (a: number, b: number): number => a - b;
const keysOf = (runs: readonly RunState[]): number[] => runs.map(({ journal }) => journal).sort(ascending);
const ofRun = <T extends { run: number }>(table: ReadonlyMap<string, T>, run: number): T[] =>
  [...table.values()].filter((row) => row.run === run);

/** Sorts rows and their fields, so that two tables can be compared as text. */
function sorted(rows: readonly object[]): string[] {
  return rows.map((row) => show(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)))).sort();
}
