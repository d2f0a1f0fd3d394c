import type pg from "pg";
import type { Random } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { WakeHint } from "../contract/store.ts";
import { awaitPlan, type Plan, type PlanContext, type Query } from "../sql/plan.ts";
import type { Connections } from "./connections.ts";
import { busy, classifyError, type ErrorClass, forbidden, isForbidden, outcomeUnknown, unreachable } from "./errors.ts";
import { type JournalAllocator, NumbersExhausted, type ReservedNumbers } from "./journal-numbers.ts";
import type { OutageRetry } from "./outage-retry.ts";

export interface WriterOptions {
  readonly connections: Connections;
  readonly journals: JournalAllocator;
  readonly patience: OutageRetry;
  readonly random: Random;
  readonly limits: Limits;
  readonly wake: (wake: WakeHint) => void;
}

export interface TransactionOptions {
  /** In whose turn, where several wait; absent: in one of the store's own. */
  readonly tenant?: string | undefined;
  /** How long a statement may wait; default: the transaction bound. Who sets it knows what to do when it runs out. */
  readonly waitMs?: number;
  /** Told of each call before it is made. */
  readonly notice?: (call: Query) => void;
  /** false: the plan takes no journal numbers, so none need be at hand. */
  readonly allocates?: boolean;
}

/** Deadlocks and serialization failures are rolled back by the server: so many times we simply ask again. */
const maxTries = 8;
/** Numbers set aside for a transaction: one for each record that it may append. */
const usualNumbers = 1_001;

/**
 * Runs plans as transactions, each with a witness: a row of a unique name. When the answer to COMMIT is lost, the same
 * witness is inserted again on another connection, marked void. If the plan's own is there, the transaction happened; if
 * ours is, it never can, and it is run again. (An error on COMMIT is not a "no": of 56 cut connections 19 had committed.)
 */
export class Writer {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Refuses with a TapeError, whatever goes wrong. */
  async run<T>(make: (context: PlanContext) => Plan<T>, options: TransactionOptions = {}): Promise<T> {
    try {
      return await this.transact(make, options);
    } catch (error) {
      throw error instanceof TapeError ? error : busy(error);
    }
  }

  async transact<T>(make: (context: PlanContext) => Plan<T>, options: TransactionOptions = {}): Promise<T> {
    const { patience } = this.#options;
    const until = patience.until();
    let numbers = options.allocates === false ? 0 : usualNumbers;
    for (let tries = 1; ; tries++) {
      const outcome = await this.#once(make, options, numbers);
      if ("value" in outcome) return outcome.value;
      const { error, fault } = outcome;
      if (error instanceof NumbersExhausted) {
        numbers *= 10; // a batch of thousands: it ends, because batches have a bound
        continue;
      }
      if (fault.kind === "blocked") throw error; // the caller knows what to do about a lock
      if (fault.kind === "slow") throw options.waitMs === undefined ? busy(error) : error;
      if (fault.kind === "refused") throw refusal(error, fault);
      if (fault.kind === "again" ? tries >= maxTries : patience.over(until)) {
        throw fault.kind === "again" ? busy(error) : unreachable(error);
      }
      await patience.pause(tries);
    }
  }

  /** A connection of the pool's; TAPE_STORE_UNREACHABLE: there is none, and so nothing was sent. */
  async connect(tenant?: string): Promise<pg.PoolClient> {
    const { connections, patience } = this.#options;
    try {
      return await patience.run(() => connections.connect(tenant));
    } catch (error) {
      throw error instanceof TapeError ? error : unreachable(error);
    }
  }

  /**
   * Numbers are set aside before there is a connection, and everybody who finds too few waits for the same block: were
   * there no bound to how many do, each block would wake all of them for two to be served.
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
    // One round trip: BEGIN and the witness. The witness is a number of ours, so it may stand in the text.
    const begin = connections.begin(options.waitMs ?? transactionBoundMs);
    await client.query(`${begin}; ${connections.textOf("witness.create", { id: witness })}`);
    const context: PlanContext = {
      limits,
      locksRelease: true,
      allocate: () => numbers.next(),
      wake: (wake) => wakes.push(wake),
    };
    return awaitPlan(make(context), (call) => {
      options.notice?.(call);
      return connections.perform(client, call);
    });
  }

  /** true: the transaction of this witness happened. false: it did not and never will. Throws when nobody can tell. */
  async landed(witness: bigint, cause: unknown): Promise<boolean> {
    const { connections, patience } = this.#options;
    try {
      // Whatever goes wrong is no answer: so long as the first transaction is open, ours waits for it.
      const ask = () => connections.ask("witness.settle", { id: witness }, undefined, true);
      return (await patience.run(ask, () => true)).rows[0]?.void === false;
    } catch {
      throw outcomeUnknown(cause);
    }
  }
}

type Outcome<T> = { readonly value: T } | { readonly error: unknown; readonly fault: ErrorClass };

const faultIn = (error: unknown): ErrorClass =>
  error instanceof NumbersExhausted ? { kind: "again" } : classifyError(error);

function refusal(error: unknown, fault: Extract<ErrorClass, { kind: "refused" }>): TapeError {
  if (fault.code === "23505" && fault.constraint === "records_head") {
    return new TapeError("TAPE_NOT_HEAD", "another writer of this term was faster", {}, error);
  }
  if (isForbidden(error)) return forbidden(error);
  const message = `the database refused a statement (${fault.code}): ${(error as Error).message}`;
  return new TapeError("TAPE_INVARIANT", message, { sqlstate: fault.code, constraint: fault.constraint }, error);
}
