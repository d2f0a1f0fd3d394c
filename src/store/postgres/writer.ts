import type pg from "pg";
import type { Random } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { WakeHint } from "../contract/store.ts";
import { awaitPlan, type Plan, type PlanContext, type Query } from "../sql/plan.ts";
import { PartitionDeltas, withPartitions } from "../sql/plans/partitions.ts";
import type { Connections } from "./connections.ts";
import {
  busy,
  classifyError,
  type ErrorClass,
  forbidden,
  isForbidden,
  outcomeUnknown,
  tenantMoving,
  unreachable,
} from "./errors.ts";
import { type JournalAllocator, NumbersExhausted, type ReservedNumbers } from "./journal-numbers.ts";
import type { OutageRetry } from "./outage-retry.ts";
import type { WitnessPurge } from "./witness-purge.ts";

export interface WriterOptions {
  readonly connections: Connections;
  readonly journals: JournalAllocator;
  readonly outageRetry: OutageRetry;
  readonly random: Random;
  readonly limits: Limits;
  readonly wake: (wake: WakeHint) => void;
  readonly purge: Pick<WitnessPurge, "beforeWrite">;
}

export interface TransactionOptions {
  /** Whose turn it uses if several wait; absent: one of the store's own. */
  readonly tenant?: string | undefined;
  /**
   * How long a statement may wait; default: the transaction bound. A caller that sets it handles the timeout itself.
   */
  readonly waitMs?: number;
  /** Called with each query before it is sent. */
  readonly onQuery?: (call: Query) => void;
  /** false: the plan needs no journal numbers, so none are reserved. */
  readonly allocates?: boolean;
}

/**
 * Deadlocks and serialization failures are rolled back by the server: the transaction is retried up to this many times.
 */
const maxTries = 8;
/** Numbers reserved for a transaction: one for each record that it may append. */
const usualNumbers = 1_001;

/**
 * Runs plans as transactions, each with a witness: a row with a unique name. If the response to COMMIT is lost, the
 * same witness is inserted again on another connection, marked void. If the plan's own row exists, the transaction
 * happened; if ours does, it never can, and it is retried. (An error on COMMIT is not a "no": of 56 cut connections 19
 * had committed.)
 */
export class Writer {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Throws only TapeErrors. */
  async run<T>(make: (context: PlanContext) => Plan<T>, options: TransactionOptions = {}): Promise<T> {
    try {
      return await this.transact(make, options);
    } catch (error) {
      throw error instanceof TapeError ? error : busy(error);
    }
  }

  async transact<T>(make: (context: PlanContext) => Plan<T>, options: TransactionOptions = {}): Promise<T> {
    const { outageRetry } = this.#options;
    const until = outageRetry.until();
    let numbers = options.allocates === false ? 0 : usualNumbers;
    for (let tries = 1; ; tries++) {
      const outcome = await this.#once(make, options, numbers);
      if ("value" in outcome) return outcome.value;
      const { error, fault } = outcome;
      if (error instanceof NumbersExhausted) {
        numbers *= 10; // a batch of thousands; terminates, because batches are bounded
        continue;
      }
      if (fault.kind === "blocked") throw error; // the caller handles locks
      if (fault.kind === "slow") throw options.waitMs === undefined ? busy(error) : error;
      if (fault.kind === "refused") throw rejection(error, fault);
      if (fault.kind === "again" ? tries >= maxTries : outageRetry.over(until)) {
        throw fault.kind === "again" ? busy(error) : unreachable(error);
      }
      await outageRetry.pause(tries);
    }
  }

  /** A pooled connection for a write. TAPE_STORE_UNREACHABLE: there is none, so nothing was sent. */
  async connect(tenant?: string): Promise<pg.PoolClient> {
    const { connections, outageRetry, purge } = this.#options;
    purge.beforeWrite();
    try {
      return await outageRetry.run(() => connections.connectToWrite(tenant));
    } catch (error) {
      throw error instanceof TapeError ? error : unreachable(error);
    }
  }

  /**
   * Numbers are reserved before there is a connection, and all callers that find too few wait for the same block.
   * Without a limit on their number, each block would wake all of them, and only two could be served.
   */
  async #once<T>(
    make: (context: PlanContext) => Plan<T>,
    options: TransactionOptions,
    count: number,
  ): Promise<Outcome<T>> {
    if (count === 0) return this.#numbered(make, options, 0);
    const { transactions } = this.#options.connections;
    await transactions.take(options.tenant).catch((error: unknown) => {
      throw error instanceof TapeError ? error : unreachable(error);
    });
    try {
      return await this.#numbered(make, options, count);
    } finally {
      transactions.give(options.tenant);
    }
  }

  async #numbered<T>(
    make: (context: PlanContext) => Plan<T>,
    options: TransactionOptions,
    count: number,
  ): Promise<Outcome<T>> {
    const numbers = await this.#options.journals.reserve(count);
    try {
      return await this.#try(make, options, numbers);
    } finally {
      numbers.done();
    }
  }

  async #try<T>(
    make: (context: PlanContext) => Plan<T>,
    options: TransactionOptions,
    numbers: ReservedNumbers,
  ): Promise<Outcome<T>> {
    const { random } = this.#options;
    const client = await this.connect(options.tenant);
    const witness = random.bits63();
    const wakes: WakeHint[] = [];
    let broken: Error | undefined;
    try {
      const value = await this.#perform(client, make, witness, { wakes, numbers }, options);
      try {
        await client.query("commit");
      } catch (error) {
        broken = error as Error;
        client.release(broken);
        if (!(await this.landed(witness, error))) return { error, fault: { kind: "connection" } };
      }
      for (const wake of wakes) this.#options.wake(wake);
      return { value };
    } catch (error) {
      if (broken !== undefined) throw error; // the outcome stays unknown
      const fault = error instanceof TapeError ? undefined : faultIn(error);
      if (fault?.kind === "connection") {
        broken = error as Error;
        client.release(broken);
      } else {
        await client.query("rollback").catch((e: Error) => {
          broken = e;
          client.release(e);
        });
      }
      if (fault === undefined) throw error;
      return { error, fault };
    } finally {
      if (broken === undefined) client.release();
    }
  }

  async #perform<T>(
    client: pg.PoolClient,
    make: (context: PlanContext) => Plan<T>,
    witness: bigint,
    { wakes, numbers }: { readonly wakes: WakeHint[]; readonly numbers: ReservedNumbers },
    options: TransactionOptions,
  ): Promise<T> {
    const { connections, limits } = this.#options;
    const { transactionBoundMs } = connections.settings;
    // One round trip: BEGIN and the witness. The witness is our own number, so it may be part of the text.
    const begin = connections.begin(options.waitMs ?? transactionBoundMs);
    await client.query(`${begin}; ${connections.textOf("witness.create", { id: witness })}`);
    const partitions = new PartitionDeltas();
    const context: PlanContext = {
      limits,
      locksRelease: true,
      allocate: () => numbers.next(),
      partitions,
      wake: (wake) => wakes.push(wake),
    };
    return awaitPlan(withPartitions(make(context), partitions), (call) => {
      options.onQuery?.(call);
      return connections.perform(client, call);
    });
  }

  /**
   * true: the transaction of this witness happened. false: it did not and never will. Throws if that cannot be
   * determined.
   */
  async landed(witness: bigint, cause: unknown): Promise<boolean> {
    const { connections, outageRetry } = this.#options;
    try {
      // Every error is retried: while the first transaction is open, ours waits for it.
      const settle = () => connections.ask("witness.settle", { id: witness }, undefined, true);
      return (await outageRetry.run(settle, () => true)).rows[0]?.void === false;
    } catch {
      throw outcomeUnknown(cause);
    }
  }
}

type Outcome<T> = { readonly value: T } | { readonly error: unknown; readonly fault: ErrorClass };

const faultIn = (error: unknown): ErrorClass =>
  error instanceof NumbersExhausted ? { kind: "again" } : classifyError(error);

export function rejection(error: unknown, fault: Extract<ErrorClass, { kind: "refused" }>): TapeError {
  if (fault.code === "23505" && fault.constraint === "records_head") {
    return new TapeError("TAPE_NOT_HEAD", "another writer of this term was faster", {}, error);
  }
  if (isForbidden(error)) return forbidden(error);
  const moving = tenantMoving(error);
  if (moving !== undefined) return moving;
  const message = `the database rejected a statement (${fault.code}): ${(error as Error).message}`;
  return new TapeError("TAPE_INVARIANT", message, { sqlstate: fault.code, constraint: fault.constraint }, error);
}
