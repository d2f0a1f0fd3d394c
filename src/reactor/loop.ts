import type { Clock } from "../base/clock.ts";
import { Lifecycle } from "../base/lifecycle.ts";
import type { Log } from "../base/log.ts";
import type { Next } from "../engine/give-back.ts";
import type { Store } from "../store/contract.ts";
import type { Counts, Reactor } from "./reactor.ts";

export interface LoopOptions {
  readonly reactors: readonly Reactor[];
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** Items of one reactor at a time. */
  readonly batch?: number;
  /** How long to rest when there was nothing to do; doubles up to `idleMs`. */
  readonly intervalMs?: number;
  readonly idleMs?: number;
  /** How long `stop` waits for what is under way. Longer than the usual time-out of an act. */
  readonly drainMs?: number;
}

/** What a reactor has done since it was started. */
export interface Tally extends Counts {
  readonly looks: number;
  /** Looks that failed as a whole: the store was away. */
  readonly faults: number;
  readonly busy: number;
}

/**
 * Runs reactors until it is stopped. Each goes on at once while it finds work, rests when it finds none, is woken by the
 * store's hints and by the back-offs it has set itself, and looks by itself after at most `idleMs`, because hints may be
 * lost. Work that takes long keeps nobody from finding more.
 */
export class ReactorLoop {
  readonly #options: LoopOptions;
  readonly #life: Lifecycle;
  readonly #stopped = new AbortController();
  readonly #turns: readonly Turn[];
  #loops: Promise<void>[] = [];
  #deaf = () => {};

  constructor(options: LoopOptions) {
    this.#options = options;
    const hint = (next: Next): void => this.#hint(next);
    this.#turns = options.reactors.map((reactor) => new Turn(reactor, options, this.#stopped.signal, hint));
    this.#life = new Lifecycle(
      () => this.#begin(),
      () => this.#end(),
    );
  }

  /** By reactor. */
  get tallies(): Readonly<Record<string, Tally>> {
    return Object.fromEntries(this.#turns.map((turn) => [turn.name, turn.tally]));
  }

  start(): Promise<void> {
    return this.#life.start();
  }

  /** Claims nothing more and waits for what is under way, within bounds. */
  stop(): Promise<void> {
    return this.#life.stop();
  }

  #begin(): void {
    this.#deaf = this.#options.store.onWake((wake) => {
      if (wake.of !== "reactor" && wake.of !== "any") return;
      for (const turn of this.#turns) if (wake.of === "any" || wake.reactor === turn.name) turn.wake();
    });
    this.#loops = this.#turns.map((turn) => turn.go());
  }

  async #end(): Promise<void> {
    const { clock, drainMs = 30_000 } = this.#options;
    this.#stopped.abort();
    this.#deaf();
    const drained = new AbortController();
    const all = Promise.all([...this.#loops, ...this.#turns.map((turn) => turn.drained())]);
    await Promise.race([all, clock.sleep(drainMs, drained.signal)]);
    drained.abort(); // a sleep that nobody waits for would keep the process alive
  }

  /** An item given back for later is due at a time that we know: a look exactly then, not at the next poll. */
  #hint({ wants, inMs = 0 }: Next): void {
    const { clock, idleMs = defaultIdleMs } = this.#options;
    const turn = this.#turns.find(({ name }) => name === wants);
    if (turn === undefined || inMs > idleMs) return;
    clock.after(inMs + 1, () => turn.wake());
  }
}

const defaultIdleMs = 5_000;

/** One reactor's own loop. */
class Turn {
  readonly name: string;
  readonly #reactor: Reactor;
  readonly #options: LoopOptions;
  readonly #stopped: AbortSignal;
  readonly #hint: (next: Next) => void;
  readonly #rounds = new Set<Promise<void>>();
  #tally = { looks: 0, faults: 0, found: 0, done: 0, failed: 0, lagMs: 0 };
  #busy = 0;
  /** It could have taken more, had there been room. */
  #full = false;
  #woken = false;
  /** A timer was due when it last went to rest. */
  #missed = false;
  #rouse = () => {};

  constructor(reactor: Reactor, options: LoopOptions, stopped: AbortSignal, hint: (next: Next) => void) {
    this.name = reactor.name;
    this.#reactor = reactor;
    this.#options = options;
    this.#stopped = stopped;
    this.#hint = hint;
  }

  get tally(): Tally {
    return { ...this.#tally, busy: this.#busy };
  }

  wake(): void {
    this.#woken = true;
    this.#rouse();
  }

  async drained(): Promise<void> {
    while (this.#rounds.size > 0) await Promise.all(this.#rounds);
  }

  async go(): Promise<void> {
    const { intervalMs = 100, idleMs = defaultIdleMs, log } = this.#options;
    let restMs = intervalMs;
    while (!this.#stopped.aborted) {
      this.#woken = false;
      let progress = false;
      try {
        progress = await this.#look();
      } catch (error) {
        this.#tally.faults++;
        log("warn", "reactor.failed", { reactor: this.name, error: String(error) });
      }
      if (progress && !this.#full) continue;
      restMs = progress || this.#full || this.#woken ? intervalMs : Math.min(idleMs, restMs * 2);
      if (!this.#woken) await this.#rest(restMs);
    }
  }

  /** true: something was found, there may be more. */
  async #look(): Promise<boolean> {
    const { batch = 50 } = this.#options;
    const room = Math.min(batch, this.#reactor.room?.() ?? batch - this.#busy);
    this.#full = room <= 0;
    if (this.#full) return false;
    this.#tally.looks++;
    if (this.#reactor.begin === undefined) {
      const counts = await this.#reactor.runOnce(room);
      this.#count(counts);
      return counts.done > 0; // found but not done: again at once would only spin
    }
    const { found, done } = await this.#reactor.begin(room, (next) => {
      this.#busy--;
      if (this.#full) this.wake();
      if (next !== undefined) this.#hint(next);
    });
    this.#busy += found;
    const round = done.then(
      (counts) => this.#count(counts),
      (error: unknown) => this.#options.log("error", "reactor.failed", { reactor: this.name, error: String(error) }),
    );
    this.#rounds.add(round);
    void round.finally(() => this.#rounds.delete(round));
    return found > 0;
  }

  #count({ found, done, failed, lagMs }: Counts): void {
    const tally = this.#tally;
    tally.found += found;
    tally.done += done;
    tally.failed += failed;
    if (found > 0) tally.lagMs = lagMs; // of the last round that found something
  }

  async #rest(restMs: number): Promise<void> {
    const { store, clock } = this.#options;
    // The next timer is known to the millisecond: no need to look before, none to be late. One that is due, and was not
    // fired when we looked for it, is not for us: looking again and again would only spin.
    const dueMs = this.name === "timers" ? await store.read.nextTimerMs().catch(() => undefined) : undefined;
    const rest = new AbortController();
    this.#rouse = () => rest.abort();
    if (this.#woken) return;
    const due = dueMs !== undefined && dueMs <= 0;
    const ms = due && !this.#missed ? 1 : due || dueMs === undefined ? restMs : Math.min(restMs, dueMs);
    this.#missed = due;
    await clock.sleep(ms, AbortSignal.any([rest.signal, this.#stopped]));
    this.#rouse = () => {};
  }
}
