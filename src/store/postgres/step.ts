import type pg from "pg";
import type { Awaitable } from "../../base/chain.ts";
import type { Random } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { Limits } from "../../model/limits.ts";
import type { NewRecord } from "../../model/records.ts";
import type { AppendResult, StepTransaction } from "../contract/store.ts";
import { BodyThrew } from "../contract/transaction.ts";
import { awaitPlan, type PlanContext } from "../sql/plan.ts";
import { appendOncePlan } from "../sql/plans/append.ts";
import { PartitionDeltas, withPartitions } from "../sql/plans/partitions.ts";
import { checkEntry } from "../validate/entry.ts";
import type { Connections } from "./connections.ts";
import { callerFault, type Entrance, noTransaction } from "./entrance.ts";
import { busy, classifyError, unreachable } from "./errors.ts";
import type { Timeline } from "./timeline.ts";
import type { Writer } from "./writer.ts";

export interface PostgresStepOptions {
  readonly connections: Connections;
  readonly writer: Writer;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly limits: Limits;
  readonly entrance: Entrance;
}

type Pool = Pick<pg.Pool, "connect">;

/**
 * The transaction of one step, on a connection of the caller's pool. The body runs first, while the run's other records
 * are appended as always; the fence is compared afterwards and holds until the commit. A witness (see Writer) shows
 * after a lost response whether the commit happened.
 *
 *   new ──execute──▶ open ──commit | rollback | abort──▶ over
 */
export class PostgresStep implements StepTransaction {
  readonly #options: PostgresStepOptions;
  readonly #pool: Pool;
  readonly #body: (client: unknown) => unknown;
  readonly #witness: bigint;
  /** Set while the transaction is open. */
  #client: pg.PoolClient | undefined;
  #value: unknown;
  #aborted: Error | undefined;
  /** Why the server ended the connection, if it did. */
  #ended: unknown;
  readonly #onError = (error: unknown): void => {
    this.#ended ??= error; // the second one is only that the connection is gone
  };

  constructor(options: PostgresStepOptions, source: unknown, body: (client: unknown) => unknown) {
    this.#options = options;
    this.#pool = source as Pool;
    this.#body = body;
    this.#witness = options.random.bits63();
  }

  get #mark(): string {
    return `step ${this.#witness}`;
  }

  async execute(): Promise<void> {
    const { connections, timeline } = this.#options;
    const { connect, query, totalCount } = (this.#pool ?? {}) as Partial<Record<string, unknown>>;
    const isClient = typeof query === "function" && totalCount === undefined;
    if (typeof connect !== "function" || isClient) {
      const message = "a transaction needs a Pool of pg, because the store is a PostgreSQL database";
      throw new BodyThrew(new TapeError("TAPE_BAD_INPUT", message, { field: "pool" }));
    }
    await timeline.check();
    const client = await this.#connect();
    if (this.#aborted !== undefined) {
      this.#release();
      throw new BodyThrew(this.#aborted);
    }
    try {
      await client.query("begin isolation level read committed");
      await this.#options.entrance.enter(client, this.#mark);
      await connections.performFor(client, { sql: "witness.create", params: { id: this.#witness } });
    } catch (error) {
      const fault = callerFault(error);
      // The pool must not lend a connection to the wrong server again.
      if (fault.code === "TAPE_STORE_UNREACHABLE") this.#release(fault);
      else await this.rollback();
      throw isPassing(fault) ? fault : new BodyThrew(fault);
    }
    try {
      this.#value = await this.#body(client);
    } catch (error) {
      throw await this.#abandon(error, bodyFault);
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    let client: pg.PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      throw unreachable(error);
    }
    client.on?.("error", this.#onError); // without a listener it would end the process
    this.#client = client;
    return client;
  }

  async commit(
    fence: Fence,
    after: number,
    recordOf: (value: unknown) => Awaitable<NewRecord>,
    begins = 1,
  ): Promise<AppendResult> {
    const client = this.#client;
    if (client === undefined) throw new TapeError("TAPE_INVARIANT", "the transaction of a step is not open");
    let appended: AppendResult;
    try {
      appended = await this.#append(client, fence, { after, begins }, recordOf);
    } catch (error) {
      throw await this.#abandon(error, appendFault);
    }
    try {
      await client.query("commit");
    } catch (error) {
      await this.#uncommitted(error);
    }
    this.#release();
    return appended;
  }

  async #append(
    client: pg.PoolClient,
    fence: Fence,
    at: { readonly after: number; readonly begins: number },
    recordOf: (value: unknown) => Awaitable<NewRecord>,
  ): Promise<AppendResult> {
    const { connections, limits } = this.#options;
    const entry = checkEntry({ ...at, records: [await recordOf(this.#value)] }, limits);
    const { rows } = await connections.performFor(client, { sql: "transaction.mark", params: {} });
    if (rows[0]?.mark !== this.#mark) throw new BodyThrew(noTransaction("the body has ended its transaction"));
    const partitions = new PartitionDeltas();
    const context: PlanContext = {
      limits,
      locksRelease: true,
      lasting: true,
      partitions,
      allocate: noNumbers,
      wake: ignore,
    };
    const plan = withPartitions(appendOncePlan(context, fence, entry), partitions);
    return awaitPlan(plan, (call) => connections.performFor(client, call));
  }

  /** Returns only if the transaction has committed nevertheless. */
  async #uncommitted(error: unknown): Promise<void> {
    const { kind } = classifyError(error);
    if (kind === "connection") {
      this.#release(error as Error);
      if (!(await this.#options.writer.landed(this.#witness, error))) throw unreachable(error);
      return;
    }
    // The server has rolled back: a deferred constraint of the caller's tables, or another transaction was in the way.
    await this.rollback();
    throw kind === "refused" ? new BodyThrew(error) : busy(error);
  }

  /** Rolls back, and returns what the failure means for the step. */
  async #abandon(error: unknown, faultOf: (error: unknown) => unknown): Promise<unknown> {
    const intact = await this.rollback();
    if ((this.#ended as { code?: unknown } | undefined)?.code === idleTooLong) {
      const { transactionBoundMs } = this.#options.connections.settings;
      const why = `the body left its transaction idle for ${transactionBoundMs} ms, and the server ended it`;
      return new BodyThrew(noTransaction(why, this.#ended));
    }
    return intact || error instanceof TapeError ? faultOf(error) : unreachable(error);
  }

  /** false: the connection is broken, and the server rolls back. */
  async rollback(): Promise<boolean> {
    const client = this.#client;
    if (client === undefined) return true;
    try {
      await client.query("rollback");
    } catch (error) {
      this.#release(error as Error);
      return false;
    }
    this.#release();
    return true;
  }

  /** The pool must not lend the connection again, because the body may still use it. */
  abort(error: Error): void {
    this.#aborted = error;
    this.#release(error);
  }

  #release(error?: Error): void {
    const client = this.#client;
    this.#client = undefined;
    client?.removeListener?.("error", this.#onError);
    client?.release(error);
  }
}

/** idle_in_transaction_session_timeout */
const idleTooLong = "25P03";
const ignore = (): void => {};

/** An error of the body is its result, unless other transactions were in its way. */
function bodyFault(error: unknown): unknown {
  const { severity, code } = (error ?? {}) as { severity?: unknown; code?: unknown };
  const isDatabaseError = typeof severity === "string" && typeof code === "string";
  return isDatabaseError && classifyError(error).kind === "again" ? busy(error) : new BodyThrew(error);
}

/** An error of our own statements. The transaction is aborted if the body has ignored an error of one of its own. */
function appendFault(error: unknown): unknown {
  if (error instanceof BodyThrew) return error;
  const fault = callerFault(error);
  return fault.code === "TAPE_NO_TRANSACTION" ? new BodyThrew(fault) : fault;
}

function noNumbers(): number {
  throw new TapeError("TAPE_INVARIANT", "the record of a step opens no journal");
}

/** Errors that concern the moment, not the step. */
const isPassing = ({ code }: TapeError): boolean => code === "TAPE_STORE_BUSY" || code === "TAPE_STORE_UNREACHABLE";
