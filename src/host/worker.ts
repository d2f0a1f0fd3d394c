import type { Tracer } from "../base/trace.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import { RunDriver } from "../engine/run-driver.ts";
import { compensation } from "../reactor/compensation.ts";
import { ReactorLoop, type ReactorStats } from "../reactor/loop.ts";
import { outbox } from "../reactor/outbox.ts";
import { reconciler } from "../reactor/reconciler.ts";
import { recovery } from "../reactor/recovery.ts";
import { timers } from "../reactor/timers.ts";

/** How long a closing program waits: for effects as long as they may take, for bodies that may hang less. */
const effectsMs = 30_000;
const bodiesMs = 10_000;

export interface WorkerOptions {
  /** Runs driven at once. Default 200. */
  readonly concurrency?: number;
}

/** Drives the runs of one runner's workflows, with the five reactors beside it. */
export class Worker implements AsyncDisposable {
  readonly driver: RunDriver;
  readonly #loop: ReactorLoop;
  readonly #serves: ReadonlySet<string>;
  /** It grows: an effect is registered by its first use. */
  readonly #definitions: ReadonlyMap<string, unknown>;
  #draining: Promise<void> | undefined;

  constructor(
    deps: ReactorDeps,
    options: WorkerOptions & {
      readonly tracing?: Tracer;
      readonly patienceMs?: number;
      readonly slowMs?: number;
      readonly onSettled: NonNullable<ConstructorParameters<typeof RunDriver>[0]["onSettled"]>;
    },
  ) {
    const { concurrency = 200, onSettled, tracing, patienceMs, slowMs } = options;
    const { store, clock, log, tenant, runner } = deps;
    this.#serves = new Set(runner.workflows.keys());
    this.#definitions = runner.effects;
    this.driver = new RunDriver({
      ...{ ...deps, concurrency, onSettled },
      ...(tracing && { tracing }),
      ...(patienceMs !== undefined && { patienceMs }),
      ...(slowMs !== undefined && { slowMs }),
    });
    const reactors = [
      recovery(this.driver),
      reconciler(deps),
      outbox(deps),
      timers(deps, this.driver),
      compensation(deps),
    ];
    this.#loop = new ReactorLoop({ reactors, store, clock, log, tenant, workflows: [...this.#serves] });
  }

  get effects(): readonly string[] {
    return [...this.#definitions.keys()];
  }

  get workflows(): readonly string[] {
    return this.#draining === undefined ? [...this.#serves] : [];
  }

  serves(workflow: string): boolean {
    return this.#draining === undefined && this.#serves.has(workflow);
  }

  /** What its reactors have done; nothing of one that takes no more work. */
  get stats(): Readonly<Record<string, ReactorStats>> {
    return this.#draining === undefined ? this.#loop.stats : {};
  }

  start(): Promise<void> {
    return this.#loop.start();
  }

  /** Takes no more work, lets what is under way come to rest, and gives back what does not. */
  drain(): Promise<void> {
    // Together: each has its bound.
    this.#draining ??= Promise.all([this.#loop.stop(), this.driver.drain(effectsMs, bodiesMs)]).then(() => {});
    return this.#draining;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.drain();
  }
}
