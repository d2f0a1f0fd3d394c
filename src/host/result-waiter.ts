import type { Clock } from "../base/clock.ts";
import { reasonOf } from "../base/reason.ts";
import type { RunResult } from "../engine/core/handle.ts";
import { stuckError } from "../engine/drive/stuck.ts";
import { asStored } from "../engine/replay/stored-value.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { RunProgress, Store, WakeHint } from "../store/contract/store.ts";

export interface ResultWaiterOptions {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
  /** Whether this process drives the run now: then its end is told, and nobody needs to look. */
  readonly drives: (journal: number) => boolean;
  readonly serves: (workflow: string) => boolean;
}

interface Waiter {
  readonly id: string;
  readonly journal: number;
  readonly begun: number;
  readonly resolve: (outcome: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly unsubscribe: () => void;
}

/** How long `result` waits for somebody who serves the workflow before it says that nobody does. */
const noWorkerAfterMs = 10_000;
/** Hints may be lost: all runs that somebody waits for are looked at so often. */
const pollMs = 1_000;
/** Two looks are at least so far apart: what happens in between shares the next one. */
const hintSpacingMs = 10;
const maxIds = 500;

/**
 * Everybody who waits for the result of a run, of all runs. The end of a run that is driven here is told without a look
 * at the store; of the others the store gives hints, and one look serves all that were hinted at.
 */
export class ResultWaiter {
  readonly #options: ResultWaiterOptions;
  readonly #waiters = new Map<number, Set<Waiter>>();
  readonly #hinted = new Set<number>();
  #looking = false;
  #wakeUp = (): void => {};

  constructor(options: ResultWaiterOptions) {
    this.#options = options;
  }

  of<O>(id: string, journal: number, signal: AbortSignal | undefined): Promise<O> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise<O>((resolve, reject) => {
      const begun = this.#options.clock.mono();
      const unsubscribe = (): void => signal?.removeEventListener("abort", stop); // a signal may outlive many results
      const waiter: Waiter = {
        id,
        journal,
        begun,
        resolve: resolve as Waiter["resolve"],
        reject,
        unsubscribe: unsubscribe,
      };
      const others = this.#waiters.get(journal);
      if (others === undefined) this.#waiters.set(journal, new Set([waiter]));
      else others.add(waiter);
      const stop = (): void => this.#end(waiter, () => reject(signal?.reason));
      signal?.addEventListener("abort", stop, { once: true });
      if (!this.#options.drives(journal)) this.#hinted.add(journal);
      if (!this.#looking) void this.#look();
      else if (this.#hinted.size > 0) this.#wakeUp();
    });
  }

  /** The run has ended, driven by this process. */
  settled(journal: number, { status, outcome }: RunResult): void {
    for (const waiter of this.#waiters.get(journal) ?? []) this.#tell(waiter, status, asStored(outcome));
  }

  /** Looks for as long as somebody waits. */
  async #look(): Promise<void> {
    const { store, clock } = this.#options;
    this.#looking = true;
    const unsubscribe = store.onWake((wake) => this.#onNote(wake));
    let polledAt = clock.mono();
    try {
      while (this.#waiters.size > 0) {
        const poll = clock.mono() - polledAt >= pollMs;
        if (poll) polledAt = clock.mono();
        await this.#lookAt(poll ? [...this.#waiters.keys()] : [...this.#hinted]);
        await clock.sleep(hintSpacingMs);
        if (this.#hinted.size === 0) await this.#rest(Math.max(0, pollMs - (clock.mono() - polledAt)));
      }
    } finally {
      this.#looking = false;
      unsubscribe();
    }
    if (this.#waiters.size > 0) void this.#look(); // somebody came between the last look and here
  }

  #onNote(wake: WakeHint): void {
    if (wake.of === "journal") {
      // Of a run that is driven here the end is told: what the driver itself writes is no news.
      if (!this.#waiters.has(wake.journal) || this.#options.drives(wake.journal)) return;
      this.#hinted.add(wake.journal);
    } else if (wake.of === "any") {
      for (const journal of this.#waiters.keys()) this.#hinted.add(journal);
    } else return;
    this.#wakeUp();
  }

  async #rest(ms: number): Promise<void> {
    if (this.#waiters.size === 0) return;
    const rest = new AbortController();
    this.#wakeUp = () => {
      this.#wakeUp = () => {};
      rest.abort();
    };
    await this.#options.clock.sleep(ms, rest.signal);
    this.#wakeUp = () => {};
  }

  async #lookAt(journals: readonly number[]): Promise<void> {
    const { store, tenant, drives } = this.#options;
    this.#hinted.clear();
    const waiting = journals.flatMap((journal) => (drives(journal) ? [] : [...(this.#waiters.get(journal) ?? [])]));
    for (let k = 0; k < waiting.length; k += maxIds) {
      const some = waiting.slice(k, k + maxIds);
      try {
        const found = await store.read.progress(
          tenant,
          some.map(({ id }) => id),
        );
        const byId = new Map(found.map((run) => [run.id, run]));
        for (const waiter of some) await this.#judge(waiter, byId.get(waiter.id));
      } catch (error) {
        for (const waiter of some) this.#end(waiter, () => waiter.reject(error));
      }
    }
  }

  async #judge(waiter: Waiter, run: RunProgress | undefined): Promise<void> {
    const { store, tenant, clock, serves } = this.#options;
    const { id } = waiter;
    const refuse = (error: TapeError): void => this.#end(waiter, () => waiter.reject(error));
    if (run === undefined) return refuse(notFound("run", id));
    if (run.ended) return this.#tell(waiter, run.status, run.outcome);
    // Stuck, and nobody about to hear that a person has resolved it.
    if (run.status === "STUCK" && run.idle) return refuse(await stuckError(store, tenant, id));
    const waited = clock.mono() - waiter.begun;
    if (run.status === "RUNNABLE" && waited > noWorkerAfterMs && !serves(run.workflow)) {
      const message = `nobody has taken run ${id} of ${run.workflow} for ${Math.round(waited)} ms`;
      refuse(new TapeError("TAPE_NO_WORKER", message, { run: id }));
    }
  }

  #tell(waiter: Waiter, status: string, outcome: unknown): void {
    const { id: run, resolve, reject } = waiter;
    this.#end(waiter, () => {
      if (status === "COMPLETED") resolve(outcome);
      else {
        const why = outcome === null || outcome === undefined ? "" : `: ${reasonOf(outcome)}`;
        reject(new TapeError("TAPE_RUN_FAILED", `run ${run} ended as ${status}${why}`, { run, status }, outcome));
      }
    });
  }

  #end(waiter: Waiter, tell: () => void): void {
    const waiters = this.#waiters.get(waiter.journal);
    if (waiters?.delete(waiter) !== true) return;
    if (waiters.size === 0) this.#waiters.delete(waiter.journal);
    if (this.#waiters.size === 0) this.#wakeUp();
    waiter.unsubscribe();
    tell();
  }
}
