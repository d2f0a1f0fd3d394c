import type { Random } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { StepTransaction, WakeHint } from "../contract/store.ts";
import type { CallerTransactions } from "../sql/backend.ts";
import { awaitPlan, type Plan, type PlanContext } from "../sql/plan.ts";
import { PartitionDeltas, withPartitions } from "../sql/plans/partitions.ts";
import { meterDuePlan, meterPlan } from "../sql/plans/quotas.ts";
import type { Connections } from "./connections.ts";
import { type CallerClient, callerFault, Entrance } from "./entrance.ts";
import { readFault } from "./errors.ts";
import type { JournalAllocator } from "./journal-numbers.ts";
import type { Notifier } from "./notifier.ts";
import { PostgresStep } from "./step.ts";
import type { Timeline } from "./timeline.ts";
import type { Writer } from "./writer.ts";

export interface PostgresCallersOptions {
  readonly connections: Connections;
  readonly writer: Writer;
  readonly journals: JournalAllocator;
  readonly notifier: Notifier;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly limits: Limits;
}

const savepoint = "tape_within";
/** No block of numbers is fetched midway. */
const spareNumbers = 3;

/**
 * Writes inside transactions of the caller's own connections. A savepoint makes each call atomic, so that a rejected one
 * leaves nothing that the caller could commit. Numbers of journals come from another connection: their row must not stay
 * locked until the caller commits. The feed waits for the caller's transaction as for any other (see feed.page).
 */
export class PostgresCallers implements CallerTransactions {
  readonly #options: PostgresCallersOptions;
  /** Calls on one connection run one after the other: their savepoints must nest. */
  readonly #turns = new WeakMap<object, Promise<unknown>>();
  readonly #entrance: Entrance;

  constructor(options: PostgresCallersOptions) {
    this.#options = options;
    this.#entrance = new Entrance(options.connections);
  }

  /** Measuring for a quota locks rows of other tenants, so it happens here and not in the caller's transaction. */
  async prepare(tenant: string): Promise<void> {
    const { connections, writer } = this.#options;
    try {
      const due = await awaitPlan(meterDuePlan(tenant), (call) => connections.performAlone(call, tenant));
      if (due) await writer.run(() => meterPlan(tenant), { tenant });
    } catch (error) {
      throw readFault(error);
    }
  }

  run<T>(transaction: unknown, make: (context: PlanContext) => Plan<T>, numbers: number): Promise<T> {
    const client = clientOf(transaction);
    const turn = (this.#turns.get(client) ?? Promise.resolve()).then(() => this.#run(client, make, numbers));
    this.#turns.set(
      client,
      turn.catch(() => {}),
    );
    return turn;
  }

  async #run<T>(client: CallerClient, make: (context: PlanContext) => Plan<T>, count: number): Promise<T> {
    const { connections, journals, notifier, timeline, random, limits } = this.#options;
    await timeline.check();
    const numbers = await journals.reserve(count === 0 ? 0 : count + spareNumbers);
    const wakes: WakeHint[] = [];
    const wake = (hint: WakeHint): void => void wakes.push(hint);
    const partitions = new PartitionDeltas();
    const context = { limits, locksRelease: true, lasting: true, partitions, allocate: () => numbers.next(), wake };
    try {
      await client.query(`savepoint ${savepoint}`);
      try {
        await this.#entrance.enter(client, random.bits63().toString(36));
        const plan = withPartitions(make(context), partitions);
        const value = await awaitPlan(plan, (call) => connections.performFor(client, call));
        await notifier.sendWithin(client, wakes);
        await client.query(`release savepoint ${savepoint}`);
        return value;
      } catch (error) {
        // On a broken connection it fails, and nothing of the transaction remains.
        await client.query(`rollback to savepoint ${savepoint}; release savepoint ${savepoint}`).catch(() => {});
        throw error;
      }
    } catch (error) {
      throw callerFault(error);
    } finally {
      numbers.done();
    }
  }

  step(source: unknown, body: (client: unknown) => unknown): StepTransaction {
    return new PostgresStep({ ...this.#options, entrance: this.#entrance }, source, body);
  }
}

function clientOf(value: unknown): CallerClient & object {
  const { query, connect, totalCount } = (value ?? {}) as { query?: unknown; connect?: unknown; totalCount?: unknown };
  const isPool = typeof connect === "function" && totalCount !== undefined;
  if (typeof query === "function" && !isPool) return value as CallerClient & object;
  const message = "transaction is a connected Client of pg, because the store is a PostgreSQL database";
  throw new TapeError("TAPE_BAD_INPUT", isPool ? `${message}; a pool is many connections` : message, {
    field: "transaction",
  });
}
