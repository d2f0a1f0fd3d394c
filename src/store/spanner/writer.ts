import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { errorFields } from "../../base/reason.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { WakeHint } from "../contract/store.ts";
import { awaitPlan, type Plan, type PlanContext } from "../sql/plan.ts";
import { PartitionDeltas, withPartitions } from "../sql/plans/partitions.ts";
import type { SpannerTransaction } from "./client.ts";
import type { Connections } from "./connections.ts";
import { busy, classifyError, faultOf, outcomeUnknown } from "./errors.ts";
import { JournalNumbers, NumbersExhausted, type ReservedNumbers } from "./journal-numbers.ts";
import { PlanTransaction } from "./transaction.ts";

export interface WriterOptions {
  readonly connections: Connections;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
  readonly log: Log;
  /** An aborted or unanswered transaction is repeated for this long. */
  readonly waitMs: number;
  readonly wake: (wake: WakeHint) => void;
}

/** Numbers reserved for a transaction; one that needs more is repeated with ten times as many. */
const usualNumbers = 64;
/** Witnesses are checked within seconds; after ten minutes they are useless. */
const witnessMs = 600_000;
const purgeEveryMs = 60_000;

/**
 * Runs plans as read-write transactions. Spanner aborts one of two that conflict: the plan is then run again as a whole,
 * with a new context, so nothing of the first attempt remains.
 *
 * Each transaction has a witness, a row with a unique name that its commit inserts. If the response to the commit is lost,
 * the same name is claimed by another transaction: if the row exists, the first one happened; if the claim commits, it
 * never can, and the plan is repeated.
 */
export class Writer {
  readonly #options: WriterOptions;
  readonly #numbers: JournalNumbers;
  #purgedAt: number;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#numbers = new JournalNumbers((size) => this.#takeBlock(size));
    this.#purgedAt = options.clock.mono();
  }

  /** Throws only TapeErrors. */
  async run<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T> {
    this.#purge();
    let numbers = await this.#numbers.reserve(usualNumbers);
    try {
      return await this.#repeat(async () => {
        numbers.restart();
        try {
          return await this.#options.connections.inSlot(tenant, () => this.#once(make, numbers));
        } catch (error) {
          if (error instanceof NumbersExhausted) numbers = await this.#numbers.reserve(10 * numbers.count);
          throw error;
        }
      });
    } finally {
      this.#numbers.release(numbers);
    }
  }

  async #once<T>(make: (context: PlanContext) => Plan<T>, numbers: ReservedNumbers): Promise<T> {
    const { connections, limits, random } = this.#options;
    const wakes: WakeHint[] = [];
    const partitions = new PartitionDeltas();
    const context: PlanContext = {
      limits,
      locksRelease: false,
      allocate: () => numbers.next(),
      partitions,
      wake: (wake) => wakes.push(wake),
    };
    const [transaction] = await connections.database.getTransaction();
    const witness = random.bits63();
    const value = await this.#transact(transaction, witness, (performer) =>
      awaitPlan(withPartitions(make(context), partitions), performer.perform),
    );
    for (const wake of wakes) this.#options.wake(wake);
    return value;
  }

  async #transact<T>(
    transaction: SpannerTransaction,
    witness: bigint,
    work: (performer: PlanTransaction) => Promise<T>,
  ): Promise<T> {
    const { connections } = this.#options;
    let value: T;
    try {
      const performer = new PlanTransaction(connections, transaction);
      value = await work(performer);
      performer.witness(witness);
    } catch (error) {
      await this.#rollback(transaction);
      throw error;
    }
    try {
      connections.roundTrips.commits++;
      await transaction.commit();
    } catch (error) {
      transaction.end();
      if (classifyError(error).kind !== "connection" || !(await this.landed(witness, error))) throw error;
    }
    return value;
  }

  /** Its locks are released at once. If that fails, the server releases them when it aborts the transaction. */
  async #rollback(transaction: SpannerTransaction): Promise<void> {
    try {
      if (transaction.id === undefined) transaction.end();
      else await transaction.rollback();
    } catch {
      transaction.end();
    }
  }

  /**
   * true: the transaction of this witness happened. false: it did not and never will. Throws if that cannot be
   * determined.
   */
  async landed(witness: bigint, cause: unknown): Promise<boolean> {
    const { connections } = this.#options;
    const params = { id: witness };
    try {
      return await this.#repeat(async () => {
        const [transaction] = await connections.database.getTransaction();
        try {
          const [found] = (await connections.perform(transaction, { sql: "witness.find", params })).rows;
          if (found === undefined) await connections.perform(transaction, { sql: "witness.settle", params });
          await transaction.commit();
          return found?.ok === true;
        } catch (error) {
          await this.#rollback(transaction);
          throw error;
        }
      });
    } catch {
      throw outcomeUnknown(cause);
    }
  }

  /** Repeats work that has written nothing. */
  async #repeat<T>(work: () => Promise<T>): Promise<T> {
    const { clock, random, waitMs } = this.#options;
    const until = clock.mono() + waitMs;
    for (let tries = 1; ; tries++) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof TapeError) throw error;
        const { kind } = error instanceof NumbersExhausted ? { kind: "again" } : classifyError(error);
        if (kind === "exists" && /records/.test((error as Error).message))
          throw new TapeError("TAPE_NOT_HEAD", "another writer of this term was faster", {}, error);
        if (kind !== "again" && kind !== "connection") throw faultOf(error);
        if (clock.mono() >= until) throw kind === "again" ? busy(error) : faultOf(error);
      }
      await clock.sleep(backoffMs(Math.min(tries, 8), { baseMs: 4, capMs: 250 }, random));
    }
  }

  /** Repeated after a lost response: the block of the lost one is lost like unused numbers. */
  #takeBlock(size: number): Promise<number> {
    const { connections } = this.#options;
    return this.#repeat(async () => {
      const [transaction] = await connections.database.getTransaction();
      try {
        const { rows } = await connections.perform(transaction, { sql: "journals.block", params: { size } });
        await transaction.commit();
        return Number(rows[0]?.first);
      } catch (error) {
        await this.#rollback(transaction);
        throw error;
      }
    });
  }

  /** Once a minute, and only beside writes: they are what creates witnesses. No write waits for it. */
  #purge(): void {
    const { clock, log } = this.#options;
    if (clock.mono() - this.#purgedAt < purgeEveryMs) return;
    this.#purgedAt = clock.mono();
    const purge = function* (): Plan<void> {
      yield { sql: "witness.purge", params: { olderMs: witnessMs } };
    };
    this.run(purge).catch((error: unknown) => {
      log("warn", "store.purge_failed", { ...errorFields(error), next: "A write in a minute repeats it." });
    });
  }
}
