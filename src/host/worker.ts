import type { ReactorDeps } from "../engine/item/deps.ts";
import type { RunDriver, RunDriverOptions } from "../engine/run-driver.ts";
import type { ReactorStats } from "../reactor/runner.ts";
import type { LoopPulse } from "./process-health.ts";
import { defaultReactors, type ReactorSpec, type RunningReactors, startReactors } from "./reactors.ts";

/** How long a closing program waits: for effects as long as they may take; less for workflow bodies, which may hang. */
const effectsMs = 30_000;
const bodiesMs = 10_000;

/** How many runs a worker drives at once. */
export interface WorkerOptions {
  /** Runs driven at once. Default 200. */
  readonly concurrency?: number;
}

export interface WorkerDriving
  extends WorkerOptions,
    Pick<
      RunDriverOptions,
      "tracing" | "onModelCall" | "onReplayed" | "patienceMs" | "slowMs" | "publicUrl" | "onSettled"
    > {}

/**
 * Drives the runs of one runner's workflows and runs the reactors: by default the five built-in ones.
 *
 * @example
 * const worker = app.worker(runner);
 * await worker.drain();
 */
export class Worker implements AsyncDisposable {
  /** undefined: this process does not run the recovery reactor. */
  readonly driver: RunDriver | undefined;
  readonly #reactors: RunningReactors;
  readonly #serves: ReadonlySet<string>;
  #draining: Promise<void> | undefined;

  constructor(deps: ReactorDeps, driver: WorkerDriving, specs: readonly ReactorSpec[] = defaultReactors) {
    this.#reactors = startReactors({ specs, deps, driver, drainMs: effectsMs, bodiesMs });
    this.driver = this.#reactors.driver;
    this.#serves = new Set(this.#reactors.workflows);
  }

  /** The effects that it can call. */
  get effects(): readonly string[] {
    return this.#reactors.effects;
  }

  /** The queues whose runs it drives. */
  get queues(): readonly string[] {
    return this.#draining === undefined ? this.#reactors.queues : [];
  }

  /** JSON Schemas of the values that its gates accept, by the gate's name. */
  get gates(): Readonly<Record<string, unknown>> {
    return this.#draining === undefined ? this.#reactors.gates : {};
  }

  /** Its build, if it pins workflows. */
  get build(): string | undefined {
    return this.#draining === undefined ? this.#reactors.build : undefined;
  }

  /** The workflows that it drives. */
  get workflows(): readonly string[] {
    return this.#draining === undefined ? [...this.#serves] : [];
  }

  /** Whether it drives this workflow. */
  serves(workflow: string): boolean {
    return this.#draining === undefined && this.#serves.has(workflow);
  }

  /** Counters of its reactors; empty once it drains. */
  get stats(): Readonly<Record<string, ReactorStats>> {
    return this.#draining === undefined ? this.#reactors.loop.stats : {};
  }

  /** Undefined once it drains: then it no longer polls. */
  get pulse(): LoopPulse | undefined {
    return this.#draining === undefined ? this.#reactors.loop.pulse : undefined;
  }

  /** How many runs it drives now. */
  get driving(): number {
    return this.#reactors.driving;
  }

  /** Takes no more work, waits for work in progress, and releases what does not finish in time. */
  drain(): Promise<void> {
    this.#draining ??= this.#reactors.stop();
    return this.#draining;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.drain();
  }
}
