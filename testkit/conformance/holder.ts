import { strict as assert } from "node:assert";
import type { ErrorCode, TapeError } from "../../src/model/errors.ts";
import type { AcquireRequest, Claimant, LeaseTarget, Term } from "../../src/model/lease.ts";
import type { JournalRecord, NewRecord, RecordData, RecordKind } from "../../src/model/records.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import type { AppendResult, RunSpec, RunView, Store } from "../../src/store/contract/store.ts";
import {
  acquired,
  bigintText,
  claimant,
  heldRun,
  nonce,
  record,
  refused,
  request,
  stillLease,
  tenant,
} from "./frame.ts";
import { lasting } from "./lease-fixtures.ts";

/** Fixtures for cases about runs and effects: a holder that appends in order, the usual records, and reads. */

export { lasting } from "./lease-fixtures.ts";

/** The holder of one journal, who knows its head. */
export class Holder {
  readonly store: Store;
  readonly term: Term;
  /** The run's id; for an item, the id of its run. */
  readonly id: string;
  head: number;

  constructor(store: Store, term: Term, id: string) {
    this.store = store;
    this.term = term;
    this.id = id;
    this.head = term.head;
  }

  get journal(): number {
    return this.term.journal;
  }

  async write(...records: readonly NewRecord[]): Promise<AppendResult> {
    const done = await this.store.fenced.append(this.term.fence, { after: this.head, records });
    this.head = done.head;
    return done;
  }

  /** Asserts that these records are rejected with this code. The caller checks whether the store is unchanged. */
  refused(code: ErrorCode, ...records: readonly NewRecord[]): Promise<TapeError> {
    return refused(code, this.store.fenced.append(this.term.fence, { after: this.head, records }));
  }

  /** Ends the term: parks a run, or hands an item off. */
  release(notesTaken = 0, more: Partial<RecordData<"term.ended">> = {}): Promise<AppendResult> {
    return this.write(record("term.ended", { reason: "released", notesTaken, ...more }));
  }

  /** The attempt that it dispatched, as its late evidence names it. */
  attempt(pos: number): { run: number; pos: number; token: bigint; nonce: bigint } {
    const { token, nonce: own } = this.term.fence;
    return { run: this.term.run, pos, token, nonce: own };
  }

  view(): Promise<RunView> {
    return viewOf(this.store, this.id);
  }

  effect(pos: number, sub = 0): Promise<EffectRow> {
    return effectOf(this.store, this.id, pos, sub);
  }
}

/** Creates a run, held by its creator. */
export async function begin(store: Store, more: Partial<RunSpec> = {}): Promise<Holder> {
  const term = await heldRun(store, more, claimant(undefined, lasting));
  return new Holder(store, term, term.id);
}

/** Acquires a free or expired journal of the run `id`. */
export async function hold(
  store: Store,
  id: string,
  target: LeaseTarget = { run: id },
  more: Partial<AcquireRequest> = {},
): Promise<Holder> {
  const term = await acquired(store, request(target, { claimant: claimant(undefined, lasting), ...more }));
  return new Holder(store, term, id);
}

/** Acquires the item journal of an effect. */
export async function holdItem(store: Store, id: string, pos: number, sub = 0): Promise<Holder> {
  const { item } = await effectOf(store, id, pos, sub);
  assert.ok(item !== null, `effect ${pos}.${sub} has no item journal`);
  return hold(store, id, { journal: item });
}

/** The terms that a reactor finds. */
export function find(
  store: Store,
  nextReactor: string,
  more: Partial<Claimant> & { tenant?: string } = {},
): Promise<Term[]> {
  const { tenant: of, ...who } = more;
  const finder = claimant(undefined, { ...lasting, reactor: nextReactor, ...who });
  const whose = of === undefined ? {} : { tenant: of };
  return store.claim.find({ claimant: finder, nextReactor, staleOf: [], limit: 100, nonce: nonce(), ...whose });
}

export async function viewOf(store: Store, id: string, of = tenant): Promise<RunView> {
  const view = await store.read.run(of, id);
  assert.ok(view !== undefined, `there is no run ${id}`);
  return view;
}

export async function statusOf(store: Store, id: string): Promise<string> {
  return (await viewOf(store, id)).status;
}

export async function effectOf(store: Store, id: string, pos: number, sub = 0): Promise<EffectRow> {
  const effects = await store.read.effects(tenant, { run: id });
  const effect = effects.find((row) => row.pos === pos && row.sub === sub);
  assert.ok(effect !== undefined, `run ${id} has no effect ${pos}.${sub}`);
  return effect;
}

/** The data of a record that must be of this kind. */
export function dataOf<K extends RecordKind>(one: JournalRecord | undefined, kind: K): RecordData<K> {
  assert.equal(one?.kind, kind);
  return one?.data as RecordData<K>;
}

export function intent(pos: number, more: Partial<RecordData<"effect.intended">> = {}): NewRecord {
  return record("effect.intended", {
    pos,
    name: "wire",
    semantics: "idempotent",
    dispatch: "inline",
    key: `key-${pos}`,
    argsHash: "hash",
    args: { amount: pos },
    ...more,
  });
}

export function dispatched(pos: number, more: Partial<RecordData<"effect.dispatched">> = {}): NewRecord {
  return record("effect.dispatched", { pos, attempt: 1, sendWithinMs: 1_000, ...more });
}

export type Settlement = RecordData<"effect.settled">["to"];

export function settled(pos: number, to: Settlement, more: Partial<RecordData<"effect.settled">> = {}): NewRecord {
  return record("effect.settled", { pos, to, reason: "returned", ...more });
}

/** The three records of a confirmed inline effect. */
export function confirmed(pos: number, more: Partial<RecordData<"effect.intended">> = {}): NewRecord[] {
  return [intent(pos, more), dispatched(pos), settled(pos, "CONFIRMED", { reason: "returned", value: pos })];
}

export function armed(pos: number, more: Partial<RecordData<"obligation.armed">> = {}): NewRecord {
  return record("obligation.armed", {
    pos,
    sub: 1,
    name: "refund",
    semantics: "idempotent",
    key: `undo-${pos}`,
    args: { amount: pos },
    ...more,
  });
}

export type Release = RecordData<"obligation.settled">["to"];

export function compensated(
  run: number,
  pos: number,
  to: Release = "COMPENSATED",
  sub = 1,
  reason = "returned",
): NewRecord {
  return record("obligation.settled", { run, pos, sub, to, reason });
}

export const decided = (cause: RecordData<"run.decided">["cause"], outcome: unknown = cause): NewRecord =>
  record("run.decided", { cause, outcome });

export function ended(
  status: RecordData<"run.ended">["status"],
  more: Partial<RecordData<"run.ended">> = {},
): NewRecord {
  return record("run.ended", { status, notesTaken: 0, ...more });
}

/** A child run, started by its parent at `pos`. */
export async function startChild(parent: Holder, pos: number, id: string): Promise<Holder> {
  await parent.write(record("child.started", { pos, id, workflow: "w", input: pos, inputHash: "h" }));
  return hold(parent.store, id);
}

export function childEnded(
  child: Holder,
  parent: Holder,
  pos: number,
  status: RecordData<"run.ended">["status"] = "COMPLETED",
  more: Partial<RecordData<"run.ended">> = {},
): Promise<AppendResult> {
  return child.write(ended(status, { parent: { journal: parent.journal, pos, id: child.id }, ...more }));
}

/**
 * Everything of these tenants in the store, except what changes with time alone. Journals are read one by one: the feed
 * of some stores lags behind open transactions, and a snapshot must not.
 */
export async function everything(store: Store, ...tenants: readonly string[]): Promise<string> {
  const parts = (tenants.length === 0 ? [tenant] : tenants).map(async (of) => {
    const { read } = store;
    const [runs, effects, gates, timers, leases, values, schedules, sinks] = await Promise.all([
      read.runs(of),
      read.effects(of),
      read.gates(of),
      read.timers(of),
      read.leases(of),
      read.values(of, ""),
      read.schedules(of),
      read.sinks(of),
    ]);
    const letters = await Promise.all(sinks.map(({ sink }) => read.deadLetters(of, sink)));
    const journals = await Promise.all(
      leases.map(async ({ journal, ...lease }) => ({
        journal,
        lease: stillLease(lease),
        records: await read.journal(of, { journal }),
        inbox: await read.journal(of, { journal }, { inbox: true }),
      })),
    );
    const budgets = await Promise.all(runs.map(({ id }) => read.budgets(of, id)));
    const published = await Promise.all(runs.map(({ id }) => read.published(of, id)));
    const quiet = runs.map(({ lease: _lease, ...run }) => run);
    // Measured by the monotonic clock and shown as a date: one millisecond of difference is no change.
    const sent = effects.map(({ sendUntil: _until, ...effect }) => effect);
    const set = timers.map(({ dueAt: _due, ...timer }) => timer);
    return { quiet, effects: sent, gates, timers: set, journals, values, schedules, budgets, published, letters };
  });
  return JSON.stringify(await Promise.all(parts), bigintText);
}

/** Asserts that the work leaves the store as it was. */
export async function unchanged<T>(store: Store, work: () => Promise<T>, ...tenants: readonly string[]): Promise<T> {
  const before = await everything(store, ...tenants);
  const result = await work();
  assert.equal(await everything(store, ...tenants), before);
  return result;
}

/** How often each outcome occurred: `{ true: 1, false: 7 }`. */
export function countOutcomes(outcomes: readonly unknown[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[String(outcome)] = (counts[String(outcome)] ?? 0) + 1;
  return counts;
}
