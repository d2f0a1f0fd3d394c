import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { Limits } from "../../model/limits.ts";
import type { CheckedEntry } from "../check.ts";
import type { Appended } from "../contract.ts";
import type { Answer } from "../sql/plan.ts";
import { numbersLiteral, textsLiteral } from "./arrays.ts";
import type { Connections } from "./connections.ts";
import { faultOf } from "./faults.ts";
import type { Writer } from "./writer.ts";

interface Waiting {
  readonly fence: Fence;
  readonly entry: CheckedEntry;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

export interface AppenderOptions {
  readonly connections: Connections;
  readonly writer: Writer;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
  /** Appends one entry in a transaction of its own and says why, if it is refused. */
  readonly alone: (fence: Fence, entry: CheckedEntry) => Promise<Appended>;
}

/** Two cores serve four batches at once best; more only fight for them. */
const lanes = 4;
const mostItems = 256;
/** Below this a batch is not split among free lanes: a round trip costs more than it saves. */
const leastShare = 32;

/**
 * Group commit for the hot path: entries of one plain record. While batches are under way the next entries gather; a free
 * lane takes what is there at once, so an idle store adds no delay. One entry per journal is in flight at a time: the
 * next one's predecessor must be visible to it.
 */
export class Appender {
  readonly #options: AppenderOptions;
  #queue: Waiting[] = [];
  #bytes = 0;
  #busyLanes = 0;
  #scheduled = false;
  readonly #inFlight = new Set<number>();
  #closed = false;
  #whenIdle: (() => void)[] = [];
  batches = 0;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  submit(fence: Fence, entry: CheckedEntry): Promise<Appended> {
    if (this.#closed) return Promise.reject(new TapeError("TAPE_STORE_CLOSED", "this store handle is closed"));
    const { pendingItems, pendingBytes } = this.#options.limits;
    if (this.#queue.length >= pendingItems || this.#bytes + entry.bytes > pendingBytes) {
      return Promise.reject(new TapeError("TAPE_OVERLOADED", `${this.#queue.length} writes wait for their commit`));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ fence, entry, resolve, reject });
      this.#bytes += entry.bytes;
      this.#schedule();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#queue.length > 0 || this.#busyLanes > 0) await new Promise<void>((done) => this.#whenIdle.push(done));
  }

  #schedule(): void {
    if (this.#scheduled || this.#busyLanes >= lanes) return;
    this.#scheduled = true;
    this.#options.clock.soon(() => this.#pump());
  }

  #pump(): void {
    this.#scheduled = false;
    while (this.#busyLanes < lanes) {
      const batch = this.#nextBatch();
      if (batch.length === 0) break;
      this.#busyLanes++;
      void this.#flush(batch).finally(() => {
        this.#busyLanes--;
        if (this.#queue.length > 0) this.#schedule();
        else if (this.#busyLanes === 0) for (const done of this.#whenIdle.splice(0)) done();
      });
    }
  }

  #nextBatch(): Waiting[] {
    const share = Math.ceil(this.#queue.length / (lanes - this.#busyLanes));
    const most = Math.min(mostItems, Math.max(leastShare, share));
    const batch: Waiting[] = [];
    const rest: Waiting[] = [];
    for (const item of this.#queue) {
      const { journal } = item.fence;
      // In the order they came: once one entry of a journal is held back, so are those behind it.
      if (batch.length < most && !this.#inFlight.has(journal)) {
        this.#inFlight.add(journal);
        batch.push(item);
        this.#bytes -= item.entry.bytes;
      } else rest.push(item);
    }
    this.#queue = rest;
    return batch;
  }

  async #flush(batch: Waiting[]): Promise<void> {
    batch.sort((a, b) => a.fence.journal - b.fence.journal);
    let answered: Map<number, number>;
    try {
      answered = await this.#together(batch);
    } catch (error) {
      for (const item of batch) {
        this.#inFlight.delete(item.fence.journal);
        item.reject(error);
      }
      return;
    }
    const late: Waiting[] = [];
    for (const item of batch) {
      const { journal } = item.fence;
      const notes = answered.get(journal);
      if (notes === undefined) late.push(item);
      else {
        this.#inFlight.delete(journal);
        item.resolve({ head: item.entry.after + 1, notes });
      }
    }
    await Promise.all(late.map((item) => this.#alone(item)));
  }

  /**
   * The notes of each journal whose entry was written; who is missing was refused, locked or unlucky, and is tried alone.
   * A lost answer is resolved for the whole batch by its witness; throws only when nobody can tell.
   */
  async #together(batch: readonly Waiting[]): Promise<Map<number, number>> {
    const { connections, random, writer } = this.#options;
    const id = random.bits63();
    const params = paramsOf(batch, id);
    this.batches++;
    try {
      return answers(await connections.query(connections.pool, "append", params));
    } catch (error) {
      if (faultOf(error).kind !== "connection") return new Map(); // one bad item spoils the statement
      if (!(await writer.landed(id, error))) return new Map();
      return answers(await writer.insist(() => connections.query(connections.pool, "append.check", params), error));
    }
  }

  async #alone(item: Waiting): Promise<void> {
    try {
      item.resolve(await this.#options.alone(item.fence, item.entry));
    } catch (error) {
      item.reject(error);
    } finally {
      this.#inFlight.delete(item.fence.journal);
    }
  }
}

function answers(answer: Answer): Map<number, number> {
  return new Map(answer.rows.map((row) => [Number(row.journal), Number(row.notes)]));
}

function paramsOf(batch: readonly Waiting[], id: bigint): Record<string, unknown> {
  return {
    id,
    journals: numbersLiteral(batch.map((item) => item.fence.journal)),
    tokens: numbersLiteral(batch.map((item) => item.fence.token)),
    nonces: numbersLiteral(batch.map((item) => item.fence.nonce)),
    afters: numbersLiteral(batch.map((item) => item.entry.after)),
    kinds: textsLiteral(batch.map((item) => item.entry.records[0]!.kind)),
    bodies: textsLiteral(batch.map((item) => item.entry.bodies[0]!)),
  };
}
