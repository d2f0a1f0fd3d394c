import type { Clock } from "../base/clock.ts";
import { OrderedListeners } from "../base/listeners.ts";
import { TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { Term } from "../model/lease.ts";
import type { RecordData, TermEnd } from "../model/records.ts";
import { type Belief, type ClockReading, elapsedSince } from "./belief.ts";
import type { LossReason } from "./lease-counts.ts";
import type { Timings } from "./timings.ts";

/** A change of what the holder believes, and why. */
export interface LeaseTransition {
  readonly to: Belief;
  readonly reason: string;
}

/** What a lease needs from its keeper. */
export interface LeaseCallbacks {
  readonly clock: Clock;
  /** How many characters of a progress note the store accepts. */
  readonly noteLength: number;
  renew(lease: Lease): Promise<void>;
  release(lease: Lease, end: TermEnd): Promise<boolean>;
  checkpoint(fence: Fence, text: string | null): Promise<void>;
  forget(lease: Lease): void;
  /** The lease was not released, but lost. */
  lost(lease: Lease, reason: LossReason): void;
  onFault(error: unknown): void;
}

/**
 * One term, as its holder sees it. Belief moves held ⇄ unknown → lost (see belief.ts); `#transition` is the only
 * setter.
 *
 * Call {@link assert} synchronously before every side effect. The abort signal is not enough: after a synchronous stall
 * past the deadline it still reads "not aborted", because the timer that aborts it has not run yet.
 *
 * @example
 * const lease = await app.leases.acquire("report");
 * lease.assert(); // throws TAPE_LEASE_LOST once it cannot be trusted
 * lease.progress("page 3");
 */
export class Lease {
  readonly term: Term;
  /** The name of the lease. */
  readonly name: string;
  readonly timings: Timings;
  /** For whom the lease is held. */
  readonly reactor: string;
  /** When the granted request, or the last successful renewal, was sent. */
  #sent: ClockReading;
  #belief: Belief = "held";
  #why = "granted";
  #progress = 0;
  #moves = 0;
  #progressAt: number;
  #timed = false;
  #waits = 0;
  #stalled = false;
  #progressNote: string | undefined;
  #renewals = 0;
  #longestGapMs = 0;
  #notes: number;
  #checkpoint: string | undefined;
  #releasing: Promise<boolean> | undefined;
  readonly #callbacks: LeaseCallbacks;
  #abort: AbortController | undefined;
  readonly #transitions: OrderedListeners<LeaseTransition>;
  /** Created on demand, because nothing listens to the renewals of a run. */
  #renewalListeners: OrderedListeners<number> | undefined;
  /** The journal's last seq, for the record that releases a named lease. Runs keep their own count. */
  head: number;
  /** The first record of the run's current generation; 1: the run has only one. */
  begins: number;

  constructor(
    name: string,
    term: Term,
    { timings, reactor, sent }: { timings: Timings; reactor: string; sent: ClockReading },
    care: LeaseCallbacks,
  ) {
    this.name = name;
    this.reactor = reactor;
    this.term = term;
    this.timings = timings;
    this.head = term.head;
    this.begins = term.begins ?? 1;
    this.#sent = sent;
    this.#notes = term.notes;
    this.#checkpoint = term.checkpoint;
    this.#progressAt = sent.mono;
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

  /** Aborts when the lease is lost, for any reason. */
  get abortSignal(): AbortSignal {
    // Created on demand: most terms end without a reader, and an abort costs more than everything else here.
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#belief === "lost") this.#abort.abort(this.#lostError(this.#why));
    }
    return this.#abort.signal;
  }

  /** Number of notes ever sent to this journal's inbox, as of the store's last response. */
  get notes(): number {
    return this.#notes;
  }

  /** The first read after the deadline finds the lease lost. It then stays lost, whatever the clocks show later. */
  get belief(): Belief {
    this.#checkDeadline();
    return this.#belief;
  }

  /** Neither renewed nor expiring, because only this process can have the store open ({@link LeaseKeeper.acquireExclusive}). */
  get neverExpires(): boolean {
    return this.timings.trustMs === Number.POSITIVE_INFINITY;
  }

  /** Milliseconds for which the holder may still act, by the worse of its clocks. */
  remainingMs(): number {
    return this.belief === "lost" ? 0 : Math.max(0, this.timings.trustMs - this.#elapsedMs());
  }

  /** Throws unless the holder may act at this moment. Reads the clocks, so it needs no timer to have fired. */
  assert(): void {
    if (this.belief !== "lost") return;
    throw this.#lostError(this.#why);
  }

  /** Its holder has written to the journal, which counts as progress even if no code reports any. */
  moved(): void {
    this.#moves++;
    if (this.#timed) this.#progressAt = this.#callbacks.clock.mono();
  }

  /** From now on each write is timed, for a lease with a limit on stalls. Without one a write reads no clock for it. */
  timeProgress(): void {
    this.#timed = true;
    this.#progressAt = this.#callbacks.clock.mono();
  }

  /**
   * A wait whose length is declared, such as a body with a time-out: until it ends, each heartbeat reports progress. The
   * caller ends it at its deadline at the latest. Returns the function that ends it.
   */
  declareWait(): () => void {
    this.#waits++;
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      this.#waits--;
      this.moved();
    };
  }

  /** For the keeper: what the next renewal reports. A declared wait counts as progress. */
  reportedProgress(): { readonly progress: number; readonly agoMs: number } {
    if (this.#waits > 0) this.moved();
    const agoMs = this.#timed ? Math.max(0, Math.floor(this.#callbacks.clock.mono() - this.#progressAt)) : 0;
    return { progress: this.#progress + this.#moves, agoMs };
  }

  /** The store refused a renewal, because the holder made no progress for longer than maxStall. */
  get stalled(): boolean {
    return this.#stalled;
  }

  /**
   * Reports progress of the work. A heartbeat only shows that the process lives. A note that the store would refuse is
   * cut to fit: it travels with the renewals of all other leases, and none of them may fail because of it.
   */
  progress(note?: string): void {
    this.#progress++;
    if (this.#timed) this.#progressAt = this.#callbacks.clock.mono();
    if (note === undefined) return;
    this.#progressNote = note.slice(0, this.#callbacks.noteLength).replaceAll("\0", "\ufffd").toWellFormed();
  }

  /** What this holder, or one before it, last saved; undefined: nothing. */
  get checkpoint(): string | undefined {
    return this.#checkpoint;
  }

  /**
   * Replaces the checkpoint of a named lease, under the fence of this term: at most 4 KiB of text, null removes it. It
   * writes no record, counts as progress, and the next holder gets it.
   */
  async saveCheckpoint(text: string | null): Promise<void> {
    this.assert();
    await this.#callbacks.checkpoint(this.fence, text);
    this.#checkpoint = text ?? undefined;
    this.progress();
  }

  /** Renews now instead of at the next heartbeat, and returns the resulting belief: "held" if the store agreed. */
  async renew(): Promise<Belief> {
    await this.#callbacks.renew(this);
    return this.belief;
  }

  /**
   * Releases the lease, so that a standby takes over at once. Stop the work first (to drain, use {@link releaseAfter}):
   * from this call on {@link assert} throws, because the successor may act before the response arrives here.
   * false: the release could not be written, and the lease expires.
   */
  release(end: TermEnd = "released"): Promise<boolean> {
    this.#releasing ??= this.#callbacks.release(this, end);
    return this.#releasing;
  }

  /**
   * Waits for the work while still renewing, then releases. If the work takes longer than the bound, the lease is not
   * released but expires: the work may still be acting, and only the TTL makes a takeover safe.
   */
  async releaseAfter(work: Promise<unknown>, boundMs: number): Promise<boolean> {
    const finished = new AbortController();
    const over = this.#callbacks.clock.sleep(boundMs, finished.signal).then(() => !finished.signal.aborted);
    const done = () => false;
    const late = await Promise.race([work.then(done, done), over]);
    finished.abort(); // a pending sleep would keep the process alive
    if (!late) return this.release("drained");
    this.end(`the work did not end within ${boundMs} ms; the lease is left to expire`);
    return false;
  }

  /**
   * Calls the listener with every change, in order. Changes that a listener causes are delivered after it has returned. A
   * listener that throws, rejects or never ends has no effect on others. Returns the unsubscriber.
   */
  onChange(listener: (transition: LeaseTransition) => unknown): () => void {
    return this.#transitions.on(listener);
  }

  /** Calls the listener after every successful renewal, with their number. Returns the unsubscriber. */
  onRenewed(listener: (renewals: number) => unknown): () => void {
    this.#renewalListeners ??= new OrderedListeners((error) => this.#callbacks.onFault(error));
    return this.#renewalListeners.on(listener);
  }

  /** Stats for the record that ends this term. */
  stats(): NonNullable<RecordData<"term.ended">["term"]> {
    const { renewals, longestGapMs, progress, progressNote } = this.counters();
    return { renewals, longestGapMs, progress, ...(progressNote === undefined ? {} : { progressNote }) };
  }

  /** Renewals, the longest gap between them, and progress of this term. */
  counters(): { renewals: number; longestGapMs: number; progress: number; progressNote: string | undefined } {
    return {
      renewals: this.#renewals,
      longestGapMs: Math.round(this.#longestGapMs),
      progress: this.#progress,
      progressNote: this.#progressNote,
    };
  }

  /** For the keeper: a renewal sent at `sent` succeeded. A response that arrives after the end changes nothing. */
  renewed(sent: ClockReading, notes: number): void {
    if (this.belief === "lost") return;
    this.#renewals++;
    this.#notes = Math.max(this.#notes, notes);
    // Responses may arrive out of order: only a later request moves the deadline.
    if (sent.mono >= this.#sent.mono) {
      this.#longestGapMs = Math.max(this.#longestGapMs, sent.mono - this.#sent.mono);
      this.#sent = sent;
    }
    if (this.#belief === "unknown") this.#transition("held", "renewed");
    this.#renewalListeners?.emit(this.#renewals);
  }

  /** For the keeper: a renewal failed, which leaves the lease unknown. */
  markUnknown(why: string): void {
    if (this.belief === "held") this.#transition("unknown", why);
  }

  /** For the keeper: the term is over, because its holder made no progress. */
  endStalled(): void {
    this.#stalled = true;
    this.#lose("stalled", "stalled: renewed without progress");
  }

  /** For the keeper: the store has refused a renewal, because the term is over. */
  endFenced(why: string): void {
    this.#lose("fenced", why);
  }

  /** For the keeper: the term is over. */
  end(why: string): void {
    if (this.#belief !== "lost") this.#transition("lost", why);
  }

  #checkDeadline(): void {
    if (this.#belief === "lost" || this.#elapsedMs() < this.timings.trustMs) return;
    const spent = Math.round(this.#elapsedMs());
    this.#lose("expired", `no renewal for ${spent} ms; it was trusted for ${Math.round(this.timings.trustMs)} ms`);
  }

  #lose(reason: LossReason, why: string): void {
    if (this.#belief === "lost") return;
    this.#callbacks.lost(this, reason);
    this.#transition("lost", why);
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
