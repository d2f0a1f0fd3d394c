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
  /** Tenant whose work is claimed; absent: every tenant's. */
  readonly tenant?: string;
  /** Workflows that this process can drive; absent: unknown. */
  readonly workflows?: readonly string[];
  /** Maximum number of items that one poll claims. */
  readonly batch?: number;
  /** Pause after a poll that found nothing; doubles up to `idleMs`. */
  readonly intervalMs?: number;
  readonly idleMs?: number;
  /** Settings of single reactors, by name. */
  readonly tuning?: Readonly<Record<string, ReactorTuning>>;
  /** How long `stop` waits for work in progress. Longer than the usual timeout of an effect. */
  readonly drainMs?: number;
}

export interface ReactorTuning {
  readonly batch?: number;
  /** Items worked on at once; default: twice the batch. A reactor with its own `capacity` ignores it. */
  readonly concurrency?: number;
  /** Of these, items of one connector, or of one effect without a connector; default: half of them. */
  readonly perConnector?: number;
  readonly intervalMs?: number;
  readonly idleMs?: number;
}

/** Counters of a reactor since its start. */
export interface ReactorStats extends ReactorCounts {
  readonly polls: number;
  /** Polls that failed as a whole, because the store was unreachable. */
  readonly faults: number;
  readonly busy: number;
  /** How often it met work that this process cannot do. */
  readonly unserved: number;
}

/**
 * Runs reactors until it is stopped. A reactor polls again at once while it finds work and pauses when it finds none.
 * Wake hints of the store and its own retry delays end the pause.
 *
 * Wake hints may be lost. So after at most `idleMs` one probe reads the store's agenda for all reactors on it, and the
 * others poll on their own. Slow work does not delay the next poll.
 */
export class ReactorLoop {
  readonly #options: LoopOptions;
  readonly #life: Lifecycle;
  readonly #stopped = new AbortController();
  readonly #runners: readonly ReactorRunner[];
  readonly #probe: AgendaProbe;
  #loops: Promise<void>[] = [];
  #unsubscribe = () => {};

  constructor(options: LoopOptions) {
    this.#options = options;
    const hint = (next: Handoff): void => this.#hint(next);
    const recheck = (): void => this.#probe.recheck();
    const hooks = { stopped: this.#stopped.signal, hint, recheck };
    this.#runners = options.reactors.map((reactor) => new ReactorRunner(reactor, options, hooks));
    const { store, clock, log, tenant, workflows, idleMs = defaultIdleMs } = options;
    const intervalMs = Math.min(...this.#runners.map((runner) => runner.intervalMs));
    const wake = (name: string | undefined): void => this.#wake(name);
    this.#probe = new AgendaProbe({ store, clock, log, tenant, workflows, intervalMs, idleMs, wake });
    this.#life = new Lifecycle(
      () => this.#start(),
      () => this.#stop(),
    );
  }

  /** Counters by reactor name. */
  get stats(): Readonly<Record<string, ReactorStats>> {
    return Object.fromEntries(this.#runners.map((runner) => [runner.name, runner.stats]));
  }

  start(): Promise<void> {
    return this.#life.start();
  }

  /** Claims nothing more and waits at most `drainMs` for work in progress. */
  stop(): Promise<void> {
    return this.#life.stop();
  }

  #start(): void {
    this.#unsubscribe = this.#options.store.onWake((wake) => this.#onWake(wake));
    this.#loops = this.#runners.map((runner) => runner.run());
    if (this.#runners.some(({ onAgenda }) => onAgenda)) this.#loops.push(this.#probe.run(this.#stopped.signal));
  }

  #onWake(wake: WakeHint): void {
    if (wake.of === "reactor" && !this.#concerns(wake)) return;
    if (wake.of === "reactor" && wake.reactor !== "timers") this.#wake(wake.reactor);
    else if (wake.of === "reactor" || wake.of === "any") {
      // A new timer is rarely due at once, and "any" may concern other work. The agenda decides.
      this.#probe.recheck();
      const isMeant = ({ name }: ReactorRunner): boolean => wake.of === "any" || name === wake.reactor;
      for (const runner of this.#runners) if (!runner.onAgenda && isMeant(runner)) runner.wake();
    }
  }

  /** Another tenant's work, or a run that this process cannot drive, is no reason to poll. */
  #concerns({ tenant, workflow }: Extract<WakeHint, { of: "reactor" }>): boolean {
    const options = this.#options;
    if (tenant !== undefined && options.tenant !== undefined && tenant !== options.tenant) return false;
    return workflow === undefined || options.workflows === undefined || options.workflows.includes(workflow);
  }

  /** undefined: every reactor on the agenda. */
  #wake(reactor: string | undefined): void {
    for (const runner of this.#runners) {
      if (reactor === undefined ? runner.onAgenda : runner.name === reactor) runner.wake();
    }
  }

  async #stop(): Promise<void> {
    const { clock, drainMs = 30_000 } = this.#options;
    this.#stopped.abort();
    this.#unsubscribe();
    const drained = new AbortController();
    const all = Promise.all([...this.#loops, ...this.#runners.map((runner) => runner.drained())]);
    await Promise.race([all, clock.sleep(drainMs, drained.signal)]);
    drained.abort(); // a pending sleep would keep the process alive
  }

  /** The due time of a released item is known: polls exactly then, not at the next interval. */
  #hint({ nextReactor, delayMs = 0 }: Handoff): void {
    const { clock, idleMs = defaultIdleMs } = this.#options;
    const runner = this.#runners.find(({ name }) => name === nextReactor);
    if (runner === undefined || delayMs > idleMs) return;
    clock.after(delayMs + 1, () => runner.wake());
  }
}

const defaultIntervalMs = 100;
const defaultIdleMs = 5_000;

/** What one reactor's loop needs from the loop of all. */
interface LoopHooks {
  readonly stopped: AbortSignal;
  readonly hint: (next: Handoff) => void;
  /** The agenda may have changed. */
  readonly recheck: () => void;
}

/** The loop of one reactor. */
class ReactorRunner {
  readonly name: string;
  readonly onAgenda: boolean;
  readonly intervalMs: number;
  readonly #reactor: Reactor;
  readonly #options: LoopOptions & ReactorTuning;
  readonly #hooks: LoopHooks;
  readonly #rounds = new Set<Promise<void>>();
  #stats = { polls: 0, faults: 0, found: 0, done: 0, failed: 0, lagMs: 0, unserved: 0 };
  #busy = 0;
  /** The last poll was skipped or cut because no capacity was left. */
  #full = false;
  #woken = false;
  #wakeUp = () => {};

  constructor(reactor: Reactor, options: LoopOptions, hooks: LoopHooks) {
    this.name = reactor.name;
    this.onAgenda = reactor.onAgenda === true;
    this.#reactor = reactor;
    this.#options = { ...options, ...options.tuning?.[reactor.name] };
    this.intervalMs = this.#options.intervalMs ?? defaultIntervalMs;
    this.#hooks = hooks;
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
    const { stopped, recheck } = this.#hooks;
    let pauseMs = intervalMs;
    while (!stopped.aborted) {
      this.#woken = false;
      let progress = false;
      let failed = false;
      try {
        progress = await this.#poll();
      } catch (error) {
        failed = true;
        this.#stats.faults++;
        log("warn", "reactor.failed", { reactor: this.name, ...errorFields(error) });
      }
      if (progress) recheck(); // the finished work may have made other work due
      if (progress && !this.#full) continue;
      pauseMs = progress || this.#full || this.#woken ? intervalMs : Math.min(idleMs, pauseMs * 2);
      const isWokenByProbe = this.onAgenda && !failed && !this.#full;
      if (!this.#woken) await this.#pause(isWokenByProbe ? Number.POSITIVE_INFINITY : pauseMs);
    }
  }

  /** true: work was found, and there may be more. */
  async #poll(): Promise<boolean> {
    const { batch = this.#reactor.batch ?? 50, concurrency = 2 * batch } = this.#options;
    const { perConnector = Math.ceil(concurrency / 2) } = this.#options;
    const limit = Math.min(batch, this.#reactor.capacity?.() ?? concurrency - this.#busy);
    this.#full = limit <= 0;
    if (this.#full) return false;
    this.#stats.polls++;
    if (this.#reactor.poll === undefined) {
      const counts = await this.#reactor.runOnce(limit);
      this.#count(counts);
      return counts.done > 0; // found but not done: polling again at once would busy-loop
    }
    const onItemDone: OnItemDone = (next, waited = false) => {
      this.#busy--;
      if (this.#full || waited) this.wake();
      if (next !== undefined) this.#hooks.hint(next);
    };
    const { found, done } = await this.#reactor.poll(limit, onItemDone, perConnector);
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

  async #pause(pauseMs: number): Promise<void> {
    const pause = new AbortController();
    this.#wakeUp = () => pause.abort();
    const signal = AbortSignal.any([pause.signal, this.#hooks.stopped]);
    if (pauseMs === Number.POSITIVE_INFINITY) await aborted(signal);
    else await this.#options.clock.sleep(pauseMs, signal);
    this.#wakeUp = () => {};
  }
}
