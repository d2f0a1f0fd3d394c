import type { Limits } from "../../model/limits.ts";
import type { WakeHint } from "../contract/store.ts";
import type { ParamsOf, RowOf, StatementName } from "./statements.gen.ts";

/**
 * A plan is one transaction, written once for every SQL store: a generator that yields named statements and receives
 * their results. SQLite runs it to its end in one tick of the event loop, inside the group's transaction; PostgreSQL
 * awaits each statement on one connection. A plan that throws has written nothing.
 */
export type Plan<T> = Generator<Query, T, QueryResult>;

export interface Query {
  readonly sql: StatementName;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Statements without parameters. */
type PlainName = { [N in StatementName]: Record<never, never> extends ParamsOf<N> ? N : never }[StatementName];

export type Row = Readonly<Record<string, unknown>>;

export interface QueryResult<R = Row> {
  readonly rows: readonly R[];
  /** Rows changed or returned. */
  readonly count: number;
  /** The page was full before all rows were read. */
  readonly more?: boolean;
}

/** What a plan may know about the store that runs it. */
export interface PlanContext {
  readonly limits: Limits;
  /** true if a fenced statement needs a stronger lock to end a term. */
  readonly locksRelease: boolean;
  /** The transaction is the caller's and may stay open: it must not lock what other tenants need. */
  readonly lasting?: boolean;
  /** A fresh journal number from this process's block. */
  allocate(): number;
  /** The counters of queues' keys that the transaction changes; written at its end. */
  readonly partitions: PartitionChanges;
  /** Hints for other processes, sent once the transaction has committed. */
  wake(wake: WakeHint): void;
}

/** How slots of queues change the counters of their keys. */
export interface PartitionChanges {
  /** A run waits in its key from now on. */
  enter(queue: number, key: string, of: number, weight?: number | null): void;
  /** A run leaves its key without a slot. */
  leave(queue: number, key: string): void;
  /** A run returns its slot. */
  return(queue: number, key: string): void;
}

const none: Readonly<Record<string, unknown>> = {};

export function query<N extends PlainName>(sql: N): Plan<QueryResult<RowOf<N>>>;
export function query<N extends StatementName>(sql: N, params: ParamsOf<N>): Plan<QueryResult<RowOf<N>>>;
export function* query(sql: StatementName, params = none): Plan<QueryResult> {
  return yield { sql, params };
}

export function queryRows<N extends PlainName>(sql: N): Plan<readonly RowOf<N>[]>;
export function queryRows<N extends StatementName>(sql: N, params: ParamsOf<N>): Plan<readonly RowOf<N>[]>;
export function* queryRows(sql: StatementName, params = none): Plan<readonly Row[]> {
  return (yield { sql, params }).rows;
}

export function queryRow<N extends PlainName>(sql: N): Plan<RowOf<N> | undefined>;
export function queryRow<N extends StatementName>(sql: N, params: ParamsOf<N>): Plan<RowOf<N> | undefined>;
export function* queryRow(sql: StatementName, params = none): Plan<Row | undefined> {
  return (yield { sql, params }).rows[0];
}

/** Runs a plan to its end with a synchronous store. */
export function runPlan<T>(plan: Plan<T>, execute: (call: Query) => QueryResult): T {
  let step = plan.next();
  while (!step.done) {
    let result: QueryResult;
    try {
      result = execute(step.value);
    } catch (error) {
      step = plan.throw(error); // the plan may handle the error
      continue;
    }
    step = plan.next(result);
  }
  return step.value;
}

/** Runs a plan to its end with an asynchronous store. */
export async function awaitPlan<T>(plan: Plan<T>, execute: (call: Query) => Promise<QueryResult>): Promise<T> {
  let step = plan.next();
  while (!step.done) {
    let result: QueryResult;
    try {
      result = await execute(step.value);
    } catch (error) {
      step = plan.throw(error);
      continue;
    }
    step = plan.next(result);
  }
  return step.value;
}
