import { aborted } from "../base/abort.ts";
import type { Clock } from "../base/clock.ts";
import { Lifecycle } from "../base/lifecycle.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import type { Handoff } from "../lease/release-journal.ts";
import type { Store, WakeHint } from "../store/contract/store.ts";
import { AgendaProbe } from "./agenda-probe.ts";
import type { OnItemDone, Reactor, ReactorCounts } from "./reactor.ts";

export interface LoopOptions {
  readonly reactors: readonly Reactor[];
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** Whose work is looked for; absent: everybody's. */
  readonly tenant?: string;
  /** Whose runs can be driven here; absent: it is not known. */
  readonly workflows?: readonly string[];
  /** Items of one reactor at a time. */
  readonly batch?: number;
  /** How long to rest when there was nothing to do; doubles up to `idleMs`. */
  readonly intervalMs?: number;
  readonly idleMs?: number;
  /** What is different for one of them, by name. */
  readonly tuning?: Readonly<Record<string, ReactorTuning>>;
  /** How long `stop` waits for what is under way. Longer than the usual time-out of an act. */
  readonly drainMs?: number;
}

export interface ReactorTuning {
  readonly batch?: number;
  /** Items worked on at once; default: twice the batch. A reactor that counts for itself (`room`) is not bound by it. */
  readonly concurrency?: number;
  /** Of these, items of one connector, or of one effect that has none; default: half of them. */
  readonly perConnector?: number;
  readonly intervalMs?: number;
  readonly idleMs?: number;
}

/** What a reactor has done since it was started. */
export interface ReactorStats extends ReactorCounts {
  readonly polls: number;
  /** Looks that failed as a whole: the store was away. */
  readonly faults: number;
  readonly busy: number;
  /** How often it met something that nobody here can do. */
  readonly unserved: number;
}

/**
 * Runs reactors until it is stopped. Each goes on at once while it finds work, rests when it finds none, and is woken by
 * the store's hints and by the back-offs it has set itself. Hints may be lost: after at most `idleMs` one probe looks at
 * the store's agenda for all of them, and whoever is not on it looks by itself. Work that takes long keeps nobody from
 * finding more.
 */
export class ReactorLoop {
  readonly #options: LoopOptions;
  readonly #life: Lifecycle;
  readonly #stopped = new AbortController();
  readonly #turns: readonly ReactorRunner[];
  readonly #probe: AgendaProbe;
  #loops: Promise<void>[] = [];
  #unsubscribe = () => {};

  constructor(options: LoopOptions) {
    this.#options = options;
    const hint = (next: Handoff): void => this.#hint(next);
    const reconsider = (): void => this.#probe.recheck();
    const around = { stopped: this.#stopped.signal, hint, reconsider };
    this.#turns = options.reactors.map((reactor) => new ReactorRunner(reactor, options, around));
    const { store, clock, log, tenant, workflows, idleMs = defaultIdleMs } = options;
    const intervalMs = Math.min(...this.#turns.map((turn) => turn.intervalMs));
    const wake = (name: string | undefined): void => this.#wake(name);
    this.#probe = new AgendaProbe({ store, clock, log, tenant, workflows, intervalMs, idleMs, wake });
    this.#life = new Lifecycle(
      () => this.#begin(),
      () => this.#end(),
    );
  }

  /** By reactor. */
  get stats(): Readonly<Record<string, ReactorStats>> {
    return Object.fromEntries(this.#turns.map((turn) => [turn.name, turn.stats]));
  }

  start(): Promise<void> {
    return this.#life.start();
  }

  /** Claims nothing more and waits for what is under way, within bounds. */
  stop(): Promise<void> {
    return this.#life.stop();
  }

  #begin(): void {
    this.#unsubscribe = this.#options.store.onWake((wake) => this.#onNote(wake));
    this.#loops = this.#turns.map((turn) => turn.run());
    if (this.#turns.some(({ onAgenda }) => onAgenda)) this.#loops.push(this.#probe.run(this.#stopped.signal));
  }

  #onNote(wake: WakeHint): void {
    if (wake.of === "reactor" && !this.#concerns(wake)) return;
    if (wake.of === "reactor" && wake.reactor !== "timers") this.#wake(wake.reactor);
    else if (wake.of === "reactor" || wake.of === "any") {
      // A new timer is rarely due at once, and "any" may be about nothing of ours: the agenda tells.
      this.#probe.recheck();
      const heard = (turn: ReactorRunner): boolean => wake.of === "any" || turn.name === wake.reactor;
      for (const turn of this.#turns) if (!turn.onAgenda && heard(turn)) turn.wake();
    }
  }

  /** Another tenant's work, or a run that cannot be driven here, is no reason to look. */
  #concerns({ tenant, workflow }: Extract<WakeHint, { of: "reactor" }>): boolean {
    const options = this.#options;
    if (tenant !== undefined && options.tenant !== undefined && tenant !== options.tenant) return false;
    return workflow === undefined || options.workflows === undefined || options.workflows.includes(workflow);
  }

  /** undefined: whoever is on the agenda. */
  #wake(reactor: string | undefined): void {
    for (const turn of this.#turns) if (reactor === undefined ? turn.onAgenda : turn.name === reactor) turn.wake();
  }

  async #end(): Promise<void> {
    const { clock, drainMs = 30_000 } = this.#options;
    this.#stopped.abort();
    this.#unsubscribe();
    const drained = new AbortController();
    const all = Promise.all([...this.#loops, ...this.#turns.map((turn) => turn.drained())]);
    await Promise.race([all, clock.sleep(drainMs, drained.signal)]);
    drained.abort(); // a sleep that nobody waits for would keep the process alive
  }

  /** An item given back for later is due at a time that we know: a look exactly then, not at the next poll. */
  #hint({ nextReactor, delayMs = 0 }: Handoff): void {
    const { clock, idleMs = defaultIdleMs } = this.#options;
    const turn = this.#turns.find(({ name }) => name === nextReactor);
    if (turn === undefined || delayMs > idleMs) return;
    clock.after(delayMs + 1, () => turn.wake());
  }
}

const defaultIntervalMs = 100;
const defaultIdleMs = 5_000;

/** What a reactor's loop has to do with the others. */
interface LoopHooks {
  readonly stopped: AbortSignal;
  readonly hint: (next: Handoff) => void;
  /** The agenda may have changed. */
  readonly reconsider: () => void;
}

/** One reactor's own loop. */
class ReactorRunner {
  readonly name: string;
  readonly onAgenda: boolean;
  readonly intervalMs: number;
  readonly #reactor: Reactor;
  readonly #options: LoopOptions & ReactorTuning;
  readonly #around: LoopHooks;
  readonly #rounds = new Set<Promise<void>>();
  #stats = { polls: 0, faults: 0, found: 0, done: 0, failed: 0, lagMs: 0, unserved: 0 };
  #busy = 0;
  /** It could have taken more, had there been room. */
  #full = false;
  #woken = false;
  #wakeUp = () => {};

  constructor(reactor: Reactor, options: LoopOptions, around: LoopHooks) {
    this.name = reactor.name;
    this.onAgenda = reactor.onAgenda === true;
    this.#reactor = reactor;
    this.#options = { ...options, ...options.tuning?.[reactor.name] };
    this.intervalMs = this.#options.intervalMs ?? defaultIntervalMs;
    this.#around = around;
  }

  get stats(): ReactorStats {
    return { ...this.#stats, busy: this.#busy };
  }

  wake(): void {
    this.#woken = true;
    this.#wakeUp();
  }

  async drained(): Promise<void> {
    while (this.#rounds.size > 0) await Promise.all(this.#rounds);
  }

  async run(): Promise<void> {
    const { intervalMs } = this;
    const { idleMs = defaultIdleMs, log } = this.#options;
    const { stopped, reconsider } = this.#around;
    let restMs = intervalMs;
    while (!stopped.aborted) {
      this.#woken = false;
      let progress = false;
      let faulty = false;
      try {
        progress = await this.#look();
      } catch (error) {
        faulty = true;
        this.#stats.faults++;
        log("warn", "reactor.failed", { reactor: this.name, ...errorFields(error) });
      }
      if (progress) reconsider(); // what was done may have set the next thing
      if (progress && !this.#full) continue;
      restMs = progress || this.#full || this.#woken ? intervalMs : Math.min(idleMs, restMs * 2);
      const toldWhen = this.onAgenda && !faulty && !this.#full;
      if (!this.#woken) await this.#rest(toldWhen ? Number.POSITIVE_INFINITY : restMs);
    }
  }

  /** true: something was found, there may be more. */
  async #look(): Promise<boolean> {
    const { batch = this.#reactor.batch ?? 50, concurrency = 2 * batch } = this.#options;
    const { perConnector = Math.ceil(concurrency / 2) } = this.#options;
    const room = Math.min(batch, this.#reactor.capacity?.() ?? concurrency - this.#busy);
    this.#full = room <= 0;
    if (this.#full) return false;
    this.#stats.polls++;
    if (this.#reactor.poll === undefined) {
      const counts = await this.#reactor.runOnce(room);
      this.#count(counts);
      return counts.done > 0; // found but not done: again at once would only spin
    }
    const freed: OnItemDone = (next, waited = false) => {
      this.#busy--;
      if (this.#full || waited) this.wake();
      if (next !== undefined) this.#around.hint(next);
    };
    const { found, done } = await this.#reactor.poll(room, freed, perConnector);
    this.#busy += found;
    const round = done.then(
      (counts) => this.#count(counts),
      (error: unknown) => this.#options.log("error", "reactor.failed", { reactor: this.name, ...errorFields(error) }),
    );
    this.#rounds.add(round);
    void round.finally(() => this.#rounds.delete(round));
    return found > 0;
  }

  #count({ found, done, failed, lagMs, unserved = 0 }: ReactorCounts): void {
    const stats = this.#stats;
    stats.found += found;
    stats.done += done;
    stats.failed += failed;
    stats.unserved += unserved;
    if (found > 0) stats.lagMs = lagMs; // of the last round that found something
  }

  async #rest(restMs: number): Promise<void> {
    const rest = new AbortController();
    this.#wakeUp = () => rest.abort();
    const signal = AbortSignal.any([rest.signal, this.#around.stopped]);
    if (restMs === Number.POSITIVE_INFINITY) await aborted(signal);
    else await this.#options.clock.sleep(restMs, signal);
    this.#wakeUp = () => {};
  }
}
