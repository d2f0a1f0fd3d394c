import { strict as assert } from "node:assert";
import { type ErrorCode, TapeError } from "../../src/model/errors.ts";
import { makeFence } from "../../src/model/fence.ts";
import type { AcquireRequest, Claimant, LeaseView, Term } from "../../src/model/lease.ts";
import type { NewRecord, RecordData, RecordKind } from "../../src/model/records.ts";
import { encodeSchedule, type SchedulePlan } from "../../src/model/schedule.ts";
import type { RunSpec, Store } from "../../src/store/contract/store.ts";

/**
 * The functions of a test runner that the suite uses; vitest's and node:test's both fit.
 *
 * @example
 * const runner: TestRunner = { describe, it, beforeEach, afterEach };
 */
export interface TestRunner {
  /** Groups tests. */
  describe(name: string, body: () => void): void;
  /** Defines a test. */
  it(name: string, body: () => Promise<void>, timeoutMs?: number): void;
  /** Runs before each test. */
  beforeEach(body: () => Promise<void>): void;
  /** Runs after each test. */
  afterEach(body: () => Promise<void>): void;
}

/**
 * One empty store, and what the suite does to it.
 *
 * @example
 * const fixture: StoreFixture = { store, another: async () => store, elapse: sleep, close: () => store.close() };
 */
export interface StoreFixture {
  readonly store: Store;
  /** A second client of the same data: another connection, or another process. The same object where there is none. */
  another(): Promise<Store>;
  /** Lets store time pass: moves a virtual clock, or sleeps. */
  elapse(ms: number): Promise<void>;
  /** A caller's own connections to the store's database. Absent: no caller can have one, and the store has no `within`. */
  readonly caller?: CallerFixture;
  /** Closes every store it opened and removes the data. */
  close(): Promise<void>;
}

/** A caller with a table of its own in the store's database, and several connections. */
export interface CallerFixture {
  /** A connection of its own, closed with the fixture. */
  connect(): Promise<CallerConnection>;
  /** What a transactional step takes: a pool, or a database. */
  readonly source: unknown;
  /** Inserts a row by what the body of such a step gets; a promise where the driver is asynchronous. */
  insert(client: unknown, row: string): unknown;
  /** The committed rows of its table, in order. */
  rows(): Promise<string[]>;
}

/** One connection of a caller. */
export interface CallerConnection {
  /** What `within` takes. */
  readonly transaction: unknown;
  /** Starts a transaction. */
  begin(): Promise<void>;
  /** Commits it. */
  commit(): Promise<void>;
  /** Rolls it back. */
  rollback(): Promise<void>;
  /** Writes a row of the caller's own table. */
  insert(row: string): Promise<void>;
}

/** A group of cases, added to the suite by name. `fresh` returns the fixture of the running case. */
export type Cases = (api: TestRunner, fresh: () => StoreFixture) => void;

/** Short, so that a store on real time sleeps little; long enough that a busy machine does not lose its leases. */
export const ttlMs = 400;

let counter = 0;
/** A name that no other case uses. */
export const unique = (what: string): string => `${what}-${++counter}`;
export const tenant = "acme";

export function claimant(owner = unique("owner"), more: Partial<Claimant> = {}): Claimant {
  return { owner, label: `label of ${owner}`, reactor: "agent", ttlMs, ...more };
}

let nonces = 1_000n;
export const nonce = (): bigint => ++nonces;

export function step(pos: number, value: unknown = pos): NewRecord {
  return record("step.done", { pos, name: `step-${pos}`, value });
}

export function record<K extends RecordKind>(kind: K, data: RecordData<K>): NewRecord {
  return { kind, data } as unknown as NewRecord;
}

export function spec(more: Partial<RunSpec> = {}): RunSpec {
  return { id: unique("run"), workflow: "w", input: { n: 1 }, ...more };
}

/** A valid schedule, marked with a text to recognise it by. */
export function scheduleSpec(mark = "x", more: Partial<SchedulePlan> = {}): string {
  const when = { cron: "0 3 * * *", timeZone: "UTC", overlap: "skip", catchUp: "latest", windowMs: 1_000 } as const;
  return encodeSchedule({ uid: "u", workflow: "w", input: mark, ...when, dueAt: null, lastRun: null, ...more });
}

/** A new run whose creator holds its first term. */
export async function heldRun(
  store: Store,
  more: Partial<RunSpec> = {},
  who = claimant(),
): Promise<Term & { id: string }> {
  const run = spec(more);
  const [created] = await store.intake.createRuns(tenant, [run], { ...who, nonce: nonce() });
  if (created === undefined || !created.ok || created.term === undefined)
    throw new Error("the run was not created held");
  return { ...created.term, id: run.id };
}

export function request(target: AcquireRequest["target"], more: Partial<AcquireRequest> = {}): AcquireRequest {
  return { target, claimant: claimant(), nonce: nonce(), expect: "free_or_expired", ...more };
}

export async function acquired(store: Store, req: AcquireRequest, of = tenant): Promise<Term> {
  const result = await store.claim.acquire(of, req);
  if (!result.ok) throw result.error;
  return result.term;
}

/** Asserts that the work is refused with this code, and reports any other result. */
export async function refused(code: ErrorCode, work: Promise<unknown>): Promise<TapeError> {
  let value: unknown;
  try {
    value = await work;
  } catch (error) {
    assert.ok(error instanceof TapeError, `expected ${code}, got ${String(error)}`);
    assert.equal(error.code, code, error.message);
    return error;
  }
  throw new assert.AssertionError({
    message: `expected ${code}, but it was accepted: ${JSON.stringify(value, bigintText)}`,
  });
}

export const bigintText = (_key: string, value: unknown): unknown => (typeof value === "bigint" ? `${value}n` : value);

/** The fence of a term with another tenant, token or nonce, as a forger or a stale owner would send it. */
export function forged(term: Term, more: { tenant?: string; token?: bigint; nonce?: bigint }): Term["fence"] {
  const { tenant: of, journal, token, nonce: own } = term.fence;
  return makeFence(more.tenant ?? of, journal, more.token ?? token, more.nonce ?? own);
}

/** A lease without the fields that time alone changes, including remaining time and expiry. */
export function stillLease(view: Omit<LeaseView, "journal">) {
  const { remainingMs: _remaining, heldMs: _held, progressAgoMs: _ago, state, ...lease } = view;
  return { ...lease, state: state === "EXPIRED" ? "HELD" : state };
}
