import type { ReactorDeps } from "../engine/item/deps.ts";
import type { RunDriver, RunDriverOptions } from "../engine/run-driver.ts";
import type { ReactorStats } from "../reactor/loop.ts";
import { defaultReactors, type RunningReactors, startReactors } from "./reactors.ts";

/** How long a closing program waits: for effects as long as they may take, for bodies that may hang less. */
const effectsMs = 30_000;
const bodiesMs = 10_000;

/** How many runs a worker drives at once. */
export interface WorkerOptions {
  /** Runs driven at once. Default 200. */
  readonly concurrency?: number;
}

/** Drives the runs of one runner's workflows, with the five reactors beside it. */
export class Worker implements AsyncDisposable {
  readonly driver: RunDriver;
  readonly #reactors: RunningReactors;
  readonly #serves: ReadonlySet<string>;
  #draining: Promise<void> | undefined;

  constructor(
    deps: ReactorDeps,
    driver: WorkerOptions & Pick<RunDriverOptions, "tracing" | "patienceMs" | "slowMs" | "onSettled">,
  ) {
    this.#reactors = startReactors({ specs: defaultReactors, deps, driver, drainMs: effectsMs, bodiesMs });
    this.driver = this.#reactors.driver!; // recovery is one of the five
    this.#serves = new Set(this.#reactors.workflows);
  }

  get effects(): readonly string[] {
    return this.#reactors.effects;
  }

  get workflows(): readonly string[] {
    return this.#draining === undefined ? [...this.#serves] : [];
  }

  serves(workflow: string): boolean {
    return this.#draining === undefined && this.#serves.has(workflow);
  }

  /** What its reactors have done; nothing of one that takes no more work. */
  get stats(): Readonly<Record<string, ReactorStats>> {
    return this.#draining === undefined ? this.#reactors.loop.stats : {};
  }

  /** Takes no more work, lets what is under way come to rest, and gives back what does not. */
  drain(): Promise<void> {
    this.#draining ??= this.#reactors.stop();
    return this.#draining;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.drain();
  }
}
