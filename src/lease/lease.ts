import type { Clock } from "../base/clock.ts";
import { OrderedListeners } from "../base/listeners.ts";
import { TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { Term } from "../model/lease.ts";
import type { RecordData, TermEnd } from "../model/records.ts";
import { type Belief, type ClockReading, elapsedSince } from "./belief.ts";
import type { Timings } from "./timings.ts";

/** A change of belief, with its reason. */
export interface LeaseTransition {
  readonly to: Belief;
  readonly reason: string;
}

/** What the keeper does for a lease. */
export interface LeaseCallbacks {
  readonly clock: Clock;
  /** Characters of a progress note that the store takes. */
  readonly noteLength: number;
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
  #sent: ClockReading;
  #belief: Belief = "held";
  #why = "granted";
  #progress = 0;
  #moves = 0;
  #progressNote: string | undefined;
  #renewals = 0;
  #longestGapMs = 0;
  #notes: number;
  #releasing: Promise<boolean> | undefined;
  readonly #callbacks: LeaseCallbacks;
  #abort: AbortController | undefined;
  readonly #transitions: OrderedListeners<LeaseTransition>;
  /** Made for whoever asks: nobody listens to the renewals of a run. */
  #renewalListeners: OrderedListeners<number> | undefined;
  /** Where the journal ends, for the record that releases a named lease. Runs keep their own count. */
  head: number;

  constructor(name: string, term: Term, timings: Timings, sent: ClockReading, care: LeaseCallbacks) {
    this.name = name;
    this.term = term;
    this.timings = timings;
    this.head = term.head;
    this.#sent = sent;
    this.#notes = term.notes;
    this.#callbacks = care;
    this.#transitions = new OrderedListeners((error) => care.onFault(error));
  }

  get fence(): Fence {
    return this.term.fence;
  }

  get tenant(): string {
    return this.term.tenant;
  }

  get token(): bigint {
    return this.term.fence.token;
  }

  /** Aborts when the lease is lost, by whatever way. */
  get abortSignal(): AbortSignal {
    // Made for whoever asks: most terms end without anybody having looked at it, and an abort costs more than the rest.
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#belief === "lost") this.#abort.abort(this.#lostError(this.#why));
    }
    return this.#abort.signal;
  }

  /** Notes ever sent to this journal's inbox, as of the last answer of the store. */
  get notes(): number {
    return this.#notes;
  }

  /** Whoever asks first after the deadline finds the lease lost, and it stays lost whatever the clocks say later. */
  get belief(): Belief {
    this.#look();
    return this.#belief;
  }

  /** Neither renewed nor running out: only this process can have the store open (see LeaseKeeper.lead). */
  get neverExpires(): boolean {
    return this.timings.trustMs === Number.POSITIVE_INFINITY;
  }

  /** Milliseconds during which the holder may still act, by the worse of its clocks; 0: not one. */
  remainingMs(): number {
    return this.belief === "lost" ? 0 : Math.max(0, this.timings.trustMs - this.#elapsedMs());
  }

  /** Throws unless the holder may act at this very moment. Reads the clocks: no timer has to have fired. */
  assert(): void {
    if (this.belief !== "lost") return;
    throw this.#lostError(this.#why);
  }

  /** Its holder has written: that counts as progress for everybody who looks, though no code reported any. */
  moved(): void {
    this.#moves++;
  }

  get moves(): number {
    return this.#moves;
  }

  /**
   * Work has moved on. Not a heartbeat: that says only that the process lives. A note that the store would not take is
   * cut to fit: it travels with the renewal of every other lease, and none of them may fail for it.
   */
  progress(note?: string): void {
    this.#progress++;
    if (note === undefined) return;
    this.#progressNote = note.slice(0, this.#callbacks.noteLength).replaceAll("\0", "\ufffd").toWellFormed();
  }

  /** Renews now instead of at the next heartbeat, and says what may be believed then: "held" if the store agreed. */
  async renew(): Promise<Belief> {
    await this.#callbacks.renew(this);
    return this.belief;
  }

  /**
   * Gives the lease back: a standby takes over at once. Stop the work first (to drain, use {@link releaseAfter}): from
   * this call on {@link assert} throws, because the answer may reach us after the successor has begun to act.
   * false: the store could not be told, and the lease runs out by itself.
   */
  release(end: TermEnd = "released"): Promise<boolean> {
    this.#releasing ??= this.#callbacks.release(this, end);
    return this.#releasing;
  }

  /**
   * Waits for the work while still renewing, then releases. Over the bound it does not release: the work may still be
   * acting, and only the running out of the TTL makes that safe.
   */
  async releaseAfter(work: Promise<unknown>, boundMs: number): Promise<boolean> {
    const finished = new AbortController();
    const over = this.#callbacks.clock.sleep(boundMs, finished.signal).then(() => !finished.signal.aborted);
    const done = () => false;
    const late = await Promise.race([work.then(done, done), over]);
    finished.abort(); // a sleep that nobody waits for would keep the process from ending
    if (!late) return this.release("drained");
    this.end(`the work did not end within ${boundMs} ms; the lease is left to run out`);
    return false;
  }

  /**
   * Told of every change, in order, as it happens; what a listener does to the lease is told after it has returned. One
   * that throws, rejects or never comes to an end harms nobody. Returns the unsubscriber.
   */
  onChange(listener: (transition: LeaseTransition) => unknown): () => void {
    return this.#transitions.on(listener);
  }

  /** Told of every renewal that the store agreed to, with their number. Returns the unsubscriber. */
  onRenewed(listener: (renewals: number) => unknown): () => void {
    this.#renewalListeners ??= new OrderedListeners((error) => this.#callbacks.onFault(error));
    return this.#renewalListeners.on(listener);
  }

  /** Figures for the ledger line that the holder itself writes. */
  stats(): NonNullable<RecordData<"term.ended">["term"]> {
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

  /** For the keeper: a renewal sent at `sent` succeeded. An answer that comes after the end changes nothing. */
  renewed(sent: ClockReading, notes: number): void {
    if (this.belief === "lost") return;
    this.#renewals++;
    this.#notes = Math.max(this.#notes, notes);
    // Answers may overtake each other: only a later sending moves the deadline.
    if (sent.mono >= this.#sent.mono) {
      this.#longestGapMs = Math.max(this.#longestGapMs, sent.mono - this.#sent.mono);
      this.#sent = sent;
    }
    if (this.#belief === "unknown") this.#transition("held", "renewed");
    this.#renewalListeners?.emit(this.#renewals);
  }

  /** For the keeper: a renewal failed, which says nothing about the lease. */
  markUnknown(why: string): void {
    if (this.belief === "held") this.#transition("unknown", why);
  }

  /** For the keeper: it is over. */
  end(why: string): void {
    if (this.#belief !== "lost") this.#transition("lost", why);
  }

  #look(): void {
    if (this.#belief === "lost" || this.#elapsedMs() < this.timings.trustMs) return;
    const spent = Math.round(this.#elapsedMs());
    this.#transition("lost", `no renewal for ${spent} ms; it was trusted for ${Math.round(this.timings.trustMs)} ms`);
  }

  #elapsedMs(): number {
    return elapsedSince(this.#sent, this.#callbacks.clock);
  }

  #lostError(why: string): TapeError {
    const { name, token } = this;
    return new TapeError("TAPE_LEASE_LOST", `${name}: ${why}`, { name, token: String(token) });
  }

  #transition(to: Belief, why: string): void {
    this.#belief = to;
    this.#why = why;
    if (to === "lost") {
      this.#callbacks.forget(this);
      this.#abort?.abort(this.#lostError(why));
    }
    this.#transitions.emit({ to, reason: why });
  }
}
