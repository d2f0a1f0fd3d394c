import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { Term } from "../model/lease.ts";
import type { RecordData, TermEnd } from "../model/records.ts";
import { type Belief, elapsedSince, type Moment } from "./belief.ts";
import type { Timings } from "./timings.ts";

export interface Transition {
  readonly to: Belief;
  readonly why: string;
}

/** What the keeper does for a lease. */
export interface LeaseCare {
  readonly clock: Clock;
  renew(lease: Lease): Promise<void>;
  release(lease: Lease, end: TermEnd): Promise<boolean>;
  forget(lease: Lease): void;
  onFault(error: unknown): void;
}

/**
 * One term, as its holder sees it. Belief moves held ⇄ unknown → lost (see belief.ts); `#become` is the only setter.
 *
 * Call {@link assert} synchronously before every act on the world. The abort signal is not enough: after a synchronous
 * stall past the deadline it still reads "not aborted", because the timer that aborts it has not had its turn.
 */
export class Lease {
  readonly term: Term;
  readonly name: string;
  readonly timings: Timings;
  /** When the request that was granted, or the last successful renewal, was sent. */
  #sent: Moment;
  #belief: Belief = "held";
  #why = "granted";
  #progress = 0;
  #progressNote: string | undefined;
  #renewals = 0;
  #longestGapMs = 0;
  #notes: number;
  readonly #care: LeaseCare;
  readonly #abort = new AbortController();
  readonly #listeners = new Set<(transition: Transition) => void>();
  /** Where the journal ends, for the record that releases a named lease. Runs keep their own count. */
  head: number;

  constructor(name: string, term: Term, timings: Timings, sent: Moment, care: LeaseCare) {
    this.name = name;
    this.term = term;
    this.timings = timings;
    this.head = term.head;
    this.#sent = sent;
    this.#notes = term.notes;
    this.#care = care;
  }

  get fence(): Fence {
    return this.term.fence;
  }

  get token(): bigint {
    return this.term.fence.token;
  }

  /** Aborts when the lease is lost, by whatever way. */
  get abortSignal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Notes ever sent to this journal's inbox, as of the last answer of the store. */
  get notes(): number {
    return this.#notes;
  }

  get belief(): Belief {
    if (this.#belief !== "lost" && this.#spentMs() >= this.timings.trustMs) return "lost";
    return this.#belief;
  }

  /** Milliseconds during which the holder may still act, by the worse of its clocks; 0: not one. */
  remainingMs(): number {
    return this.#belief === "lost" ? 0 : Math.max(0, this.timings.trustMs - this.#spentMs());
  }

  /** Throws unless the holder may act at this very moment. Reads the clocks: no timer has to have fired. */
  assert(): void {
    if (this.#belief !== "lost" && this.#spentMs() >= this.timings.trustMs) {
      this.#become(
        "lost",
        `no renewal for ${Math.round(this.#spentMs())} ms; it was trusted for ${this.timings.trustMs} ms`,
      );
    }
    if (this.#belief === "lost") {
      throw new TapeError("TAPE_LEASE_LOST", `${this.name}: ${this.#why}`, {
        name: this.name,
        token: String(this.token),
      });
    }
  }

  /** Work has moved on. Not a heartbeat: that says only that the process lives. */
  progress(note?: string): void {
    this.#progress++;
    if (note !== undefined) this.#progressNote = note;
  }

  /** Renews now instead of at the next heartbeat. */
  renew(): Promise<void> {
    return this.#care.renew(this);
  }

  /**
   * Gives the lease back: a standby takes over at once. Stop the work first; to drain, use {@link releaseAfter}.
   * false: the store could not be told, and the lease runs out by itself.
   */
  release(end: TermEnd = "released"): Promise<boolean> {
    return this.#care.release(this, end);
  }

  /**
   * Waits for the work while still renewing, then releases. Over the bound it does not release: the work may still be
   * acting, and only the running out of the TTL makes that safe.
   */
  async releaseAfter(work: Promise<unknown>, boundMs: number): Promise<boolean> {
    const late = Symbol("late");
    const finished = work.then(
      () => undefined,
      () => undefined,
    );
    const first = await Promise.race([finished, this.#care.clock.sleep(boundMs).then(() => late)]);
    if (first === late) {
      this.#care.forget(this);
      this.#become("lost", `the work did not end within ${boundMs} ms; the lease is left to run out`);
      return false;
    }
    return this.release("drained");
  }

  /** Told of every change, in order, as it happens. A listener that throws harms nobody. Returns the unsubscriber. */
  onChange(listener: (transition: Transition) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Figures for the ledger line that the holder itself writes. */
  figures(): NonNullable<RecordData<"term.ended">["term"]> {
    const { renewals, longestGapMs, progress, progressNote } = this.counters();
    return { renewals, longestGapMs, progress, ...(progressNote === undefined ? {} : { progressNote }) };
  }

  counters(): { renewals: number; longestGapMs: number; progress: number; progressNote: string | undefined } {
    return {
      renewals: this.#renewals,
      longestGapMs: Math.round(this.#longestGapMs),
      progress: this.#progress,
      progressNote: this.#progressNote,
    };
  }

  /** For the keeper: a renewal sent at `sent` succeeded. */
  renewed(sent: Moment, notes: number): void {
    if (this.#belief === "lost") return; // an answer that comes after the end changes nothing
    this.#longestGapMs = Math.max(this.#longestGapMs, sent.mono - this.#sent.mono);
    this.#sent = sent;
    this.#renewals++;
    this.#notes = notes;
    if (this.#belief === "unknown") this.#become("held", "renewed");
  }

  /** For the keeper: a renewal failed, which says nothing about the lease. */
  doubted(why: string): void {
    if (this.#belief === "held") this.#become("unknown", why);
  }

  /** For the keeper: it is over. */
  lost(why: string): void {
    if (this.#belief !== "lost") this.#become("lost", why);
  }

  #spentMs(): number {
    return elapsedSince(this.#sent, this.#care.clock);
  }

  #become(to: Belief, why: string): void {
    this.#belief = to;
    this.#why = why;
    if (to === "lost") {
      this.#care.forget(this);
      this.#abort.abort(new TapeError("TAPE_LEASE_LOST", `${this.name}: ${why}`, { name: this.name }));
    }
    for (const listener of this.#listeners) {
      try {
        listener({ to, why });
      } catch (error) {
        this.#care.onFault(error);
      }
    }
  }
}
