import { aborted } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import type { Duration } from "../../base/duration.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { errorFields } from "../../base/reason.ts";
import type { Belief } from "../../lease/belief.ts";
import type { LeaseKeeper } from "../../lease/keeper.ts";
import type { Lease } from "../../lease/lease.ts";
import type { Fence } from "../../model/fence.ts";
import { durationOrThrow } from "../../sdk/validate.ts";
import type { Store } from "../../store/contract/store.ts";

/** A shard of a singleton, for the body that works on it. */
export interface Shard {
  /** From 0 to `of` - 1; `shardOf(key, of)` says which keys belong to it. */
  readonly index: number;
  /** How many shards there are. */
  readonly of: number;
  /** Checkpoints of shards of another number, from before a reshard. */
  readonly before: readonly { readonly index: number; readonly of: number; readonly checkpoint: string }[];
}

/** What a singleton's body receives for one term. The child loops of a singleton share it, with the abort signal. */
export interface SingletonContext {
  /** The name of the singleton. */
  readonly name: string;
  readonly tenant: string;
  readonly lease: Lease;
  /** For guards: proves that a write belongs to this term. */
  readonly fence: Fence;
  readonly token: bigint;
  /** The shard that this body works on; undefined: the singleton has no shards. */
  readonly shard: Shard | undefined;
  /** What the holder last saved; undefined: nothing yet. The next holder gets it. */
  readonly checkpoint: string | undefined;
  /** Replaces the checkpoint, under the fence of this term: at most 4 KiB; null removes it. It leaves no record. */
  saveCheckpoint(text: string | null): Promise<void>;
  /** Aborts when the lease is lost, and when the singleton must stop; in that case the lease is still held. */
  readonly abortSignal: AbortSignal;
  /** held, unknown (a renewal failed; effects are allowed until the deadline), or lost. */
  readonly belief: Belief;
  /** Throws unless this replica holds the lease right now. Call it immediately before each effect. */
  assert(): void;
  /** Reports progress of the work; a heartbeat shows only that the process is alive. */
  progress(note?: string): void;
  /** Declares a wait, which is no stall: its subject and its maximum duration. The next `progress` ends it. */
  waitingFor(what: string, within: Duration): void;
  /** Resolves after `duration`, or at once when the signal aborts. Counts as a declared wait. */
  sleep(duration: Duration): Promise<void>;
}

/** The work of a singleton for one term; it runs until it returns or is aborted. */
export type SingletonBody = (context: SingletonContext) => unknown;
/** One body, or several child loops by name. */
export type SingletonWork = SingletonBody | Readonly<Record<string, SingletonBody>>;

export interface SingletonDeps {
  readonly store: Store;
  readonly keeper: LeaseKeeper;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

export interface TermOptions {
  readonly work: SingletonWork;
  readonly shard: Shard | undefined;
  readonly everyMs: number | undefined;
  readonly maxStallMs: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The work of one term: child loops that start together, share one abort signal and end together. The first one that
 * fails aborts the others. `failed` resolves at once then, `ended` when all children have stopped.
 *
 * A child that returns has finished its work for this term. The lease is kept, so that no other replica repeats it.
 */
export class TermWork {
  readonly context: SingletonContext;
  /** Resolves when a child fails on its own, before the others have stopped. */
  readonly failed: Promise<unknown>;
  /** Resolves when every child has stopped. Never rejects. */
  readonly ended: Promise<void>;
  readonly #lease: Lease;
  readonly #options: TermOptions;
  readonly #abort = new AbortController();
  #fail: (error: unknown) => void = () => {};
  #waiting: AbortController | undefined;
  #running = true;

  constructor(lease: Lease, options: TermOptions) {
    this.#lease = lease;
    this.#options = options;
    this.context = this.#contextOf(lease);
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.ended = this.#run();
  }

  /** false: a child of this term still executes in this process. */
  get idle(): boolean {
    return !this.#running;
  }

  /** Aborts every child. */
  abort(reason: unknown): void {
    if (!this.#abort.signal.aborted) this.#abort.abort(reason);
  }

  async #run(): Promise<void> {
    const { work } = this.#options;
    const bodies = typeof work === "function" ? [[this.context.name, work] as const] : Object.entries(work);
    await Promise.all(bodies.map(([name, body]) => this.#child(name, body)));
    // All children returned: this is no stall, but a wait for the end of the term.
    if (!this.#abort.signal.aborted) {
      this.#wait("all work of this term is done", Number.POSITIVE_INFINITY);
      await aborted(this.#abort.signal);
    }
    this.#waiting?.abort();
    this.#running = false;
  }

  async #child(name: string, body: SingletonBody): Promise<void> {
    const { everyMs, log } = this.#options;
    try {
      do {
        await body(this.context);
        if (everyMs === undefined || this.#abort.signal.aborted) return;
        this.context.progress();
        await this.context.sleep(everyMs);
      } while (!this.#abort.signal.aborted);
    } catch (error) {
      // An error after the abort is a consequence of the abort.
      if (this.#abort.signal.aborted) return log("debug", "singleton.body_aborted", { name, ...errorFields(error) });
      this.abort(error);
      this.#fail(error);
    }
  }

  #contextOf(lease: Lease): SingletonContext {
    const { clock, shard } = this.#options;
    const { signal } = this.#abort;
    return {
      name: lease.name,
      tenant: lease.tenant,
      lease,
      fence: lease.fence,
      token: lease.token,
      shard,
      get checkpoint() {
        return lease.checkpoint;
      },
      saveCheckpoint: (text) => lease.saveCheckpoint(text),
      abortSignal: signal,
      get belief() {
        return lease.belief;
      },
      assert: () => lease.assert(),
      progress: (note) => {
        this.#waiting?.abort();
        lease.progress(note);
      },
      waitingFor: (what, within) => this.#wait(what, durationOrThrow(lease.name, "within", within)),
      sleep: async (duration) => {
        const ms = durationOrThrow(lease.name, "the sleep's duration", duration);
        this.#wait("sleeping", ms);
        await clock.sleep(ms, signal);
      },
    };
  }

  /** Reports progress for a waiting child, exactly as long as it declared. */
  #wait(what: string, withinMs: number): void {
    const { maxStallMs, clock } = this.#options;
    this.#waiting?.abort();
    if (maxStallMs === undefined) return;
    const stop = new AbortController();
    this.#waiting = stop;
    const until = clock.mono() + withinMs;
    const tick = (): void => {
      if (stop.signal.aborted || this.#lease.belief === "lost") return;
      this.#lease.progress(what);
      if (clock.mono() < until) clock.after(maxStallMs / 3, tick);
    };
    tick();
  }
}
