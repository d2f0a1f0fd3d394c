import type { Clock } from "../base/clock.ts";
import { Lifecycle } from "../base/lifecycle.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Handoff } from "../lease/release-journal.ts";
import { type BuildClaim, ownReactor, plainReactor } from "../model/build.ts";
import type { Store, WakeHint } from "../store/contract/store.ts";
import { AgendaProbe } from "./agenda-probe.ts";
import type { Reactor } from "./reactor.ts";
import { defaultIdleMs, ReactorRunner, type ReactorStats, type ReactorTuning } from "./runner.ts";

export interface LoopOptions extends ReactorTuning {
  readonly reactors: readonly Reactor[];
  readonly store: Store;
  readonly clock: Clock;
  /** For jitter; absent: none. */
  readonly random?: Random;
  readonly log: Log;
  /** Tenant whose work is claimed; absent: every tenant's. */
  readonly tenant?: string;
  /** Workflows that this process can drive; absent: unknown. */
  readonly workflows?: readonly string[];
  /** Queues whose runs this process can drive. */
  readonly queues?: readonly string[];
  /** The build of this process, if it pins workflows. */
  readonly build?: () => BuildClaim | undefined;
  /** Settings of single reactors, by name. */
  readonly tuning?: Readonly<Record<string, ReactorTuning>>;
  /** How long `stop` waits for work in progress. Longer than the usual timeout of an effect. */
  readonly drainMs?: number;
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
  readonly #pollEveryMs: number;
  #loops: Promise<void>[] = [];
  #polledAt: number;
  #unsubscribe = () => {};

  constructor(options: LoopOptions) {
    this.#options = options;
    const hint = (next: Handoff): void => this.#hint(next);
    const recheck = (): void => this.#probe.recheck();
    this.#polledAt = options.clock.mono();
    const polled = (): void => {
      this.#polledAt = options.clock.mono();
    };
    const hooks = { stopped: this.#stopped.signal, hint, recheck, polled };
    const runnerOf = (reactor: Reactor) =>
      new ReactorRunner(reactor, { ...options, ...options.tuning?.[reactor.name] }, hooks);
    this.#runners = options.reactors.map(runnerOf);
    const { store, clock, random, log, tenant, workflows, queues = [], build = () => undefined } = options;
    const onAgenda = this.#runners.filter((runner) => runner.onAgenda);
    const intervalMs = Math.min(...this.#runners.map((runner) => runner.intervalMs));
    // One poll for all: the shortest interval counts.
    const idleMs = Math.min(...(onAgenda.length > 0 ? onAgenda.map((runner) => runner.idleMs) : [defaultIdleMs]));
    const takeover = {
      baseMs: Math.min(...onAgenda.map((runner) => runner.takeover.baseMs)),
      capMs: Math.min(...onAgenda.map((runner) => runner.takeover.capMs)),
    };
    const wake = (name: string | undefined): void => this.#wake(name);
    const timing = { clock, random, intervalMs, idleMs, takeover };
    this.#probe = new AgendaProbe({ store, log, tenant, workflows, queues, build, ...timing, wake, polled });
    this.#pollEveryMs = onAgenda.length > 0 ? idleMs : Math.min(...this.#runners.map((runner) => runner.idleMs));
    this.#life = new Lifecycle(
      () => this.#start(),
      () => this.#stop(),
    );
  }

  /** Counters by reactor name. */
  get stats(): Readonly<Record<string, ReactorStats>> {
    return Object.fromEntries(this.#runners.map((runner) => [runner.name, runner.stats]));
  }

  /** When any of its reactors last finished a poll, and how often one does at least. */
  get pulse(): { readonly polledAt: number; readonly pollEveryMs: number } {
    return { polledAt: this.#polledAt, pollEveryMs: this.#pollEveryMs };
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

  #onWake(hint: WakeHint): void {
    const wake = hint.of === "reactor" ? this.#ownHint(hint) : hint;
    if (wake === undefined || (wake.of === "reactor" && !this.#concerns(wake))) return;
    if (wake.of === "reactor" && wake.reactor !== "timers") this.#wake(wake.reactor);
    else if (wake.of === "reactor" || wake.of === "any") {
      // A new timer is rarely due at once, and "any" may concern other work. The agenda decides.
      this.#probe.recheck();
      const isMeant = ({ name }: ReactorRunner): boolean => wake.of === "any" || name === wake.reactor;
      for (const runner of this.#runners) if (!runner.onAgenda && isMeant(runner)) runner.wake();
    }
  }

  /** A hint for runs of another build is none, unless the reactors run in processes whose builds are unknown here. */
  #ownHint(hint: Extract<WakeHint, { of: "reactor" }>): typeof hint | undefined {
    const { workflows, build } = this.#options;
    const reactor = workflows === undefined ? plainReactor(hint.reactor) : ownReactor(hint.reactor, build?.()?.build);
    return reactor === undefined ? undefined : { ...hint, reactor };
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
    const { clock } = this.#options;
    const runner = this.#runners.find(({ name }) => name === nextReactor);
    if (runner === undefined || delayMs > runner.idleMs) return;
    clock.after(delayMs + 1, () => runner.wake());
  }
}
