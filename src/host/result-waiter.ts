import type { Clock } from "../base/clock.ts";
import { isErased, isSealed } from "../base/codec.ts";
import { reasonOf } from "../base/reason.ts";
import type { RunResult } from "../engine/core/handle.ts";
import { stuckError } from "../engine/drive/stuck.ts";
import { asStored } from "../engine/replay/stored-value.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import { erasedError, sealedError } from "../model/payloads.ts";
import type { RunProgress, Store, WakeHint } from "../store/contract/store.ts";

export interface ResultWaiterOptions {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
  /** Whether this process drives the run now: then the driver reports its end, and no poll is needed. */
  readonly drives: (journal: number) => boolean;
  readonly serves: (workflow: string) => boolean;
}

interface Waiter {
  readonly id: string;
  readonly journal: number;
  readonly startedAt: number;
  readonly resolve: (outcome: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly unsubscribe: () => void;
}

/** How long `result` waits for a process that serves the workflow before it fails with TAPE_NO_WORKER. */
const noWorkerAfterMs = 10_000;
/** Wake hints may be lost: all awaited runs are polled this often. */
const pollMs = 1_000;
/** Minimum time between two polls. Hints that arrive in between share the next poll. */
const hintSpacingMs = 10;
const maxIds = 500;

/**
 * Waits for the results of runs, for all callers of a process. The driver reports the end of a run that is driven here,
 * without a query. For other runs the store sends wake hints, and one query serves all hinted runs.
 */
export class ResultWaiter {
  readonly #options: ResultWaiterOptions;
  readonly #waiters = new Map<number, Set<Waiter>>();
  readonly #hinted = new Set<number>();
  #polling = false;
  #wakeUp = (): void => {};

  constructor(options: ResultWaiterOptions) {
    this.#options = options;
  }

  of<O>(id: string, journal: number, signal: AbortSignal | undefined): Promise<O> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise<O>((resolve, reject) => {
      const startedAt = this.#options.clock.mono();
      const unsubscribe = (): void => signal?.removeEventListener("abort", stop); // a signal may outlive many results
      const waiter: Waiter = {
        id,
        journal,
        startedAt,
        resolve: resolve as Waiter["resolve"],
        reject,
        unsubscribe,
      };
      const others = this.#waiters.get(journal);
      if (others === undefined) this.#waiters.set(journal, new Set([waiter]));
      else others.add(waiter);
      const stop = (): void => this.#end(waiter, () => reject(signal?.reason));
      signal?.addEventListener("abort", stop, { once: true });
      if (!this.#options.drives(journal)) this.#hinted.add(journal);
      if (!this.#polling) void this.#poll();
      else if (this.#hinted.size > 0) this.#wakeUp();
    });
  }

  /** The run has ended, driven by this process. */
  settled(journal: number, { status, outcome }: RunResult): void {
    for (const waiter of this.#waiters.get(journal) ?? []) this.#deliver(waiter, status, asStored(outcome));
  }

  /** Polls as long as there are waiters. */
  async #poll(): Promise<void> {
    const { store, clock } = this.#options;
    this.#polling = true;
    const unsubscribe = store.onWake((wake) => this.#onWake(wake));
    let polledAt = clock.mono();
    try {
      while (this.#waiters.size > 0) {
        const isPollDue = clock.mono() - polledAt >= pollMs;
        if (isPollDue) polledAt = clock.mono();
        await this.#check(isPollDue ? [...this.#waiters.keys()] : [...this.#hinted]);
        await clock.sleep(hintSpacingMs);
        if (this.#hinted.size === 0) await this.#pause(Math.max(0, pollMs - (clock.mono() - polledAt)));
      }
    } finally {
      this.#polling = false;
      unsubscribe();
    }
    if (this.#waiters.size > 0) void this.#poll(); // a waiter came after the last check
  }

  #onWake(wake: WakeHint): void {
    if (wake.of === "journal") {
      // The driver reports the end of a run that is driven here, so hints about its own writes are ignored.
      if (!this.#waiters.has(wake.journal) || this.#options.drives(wake.journal)) return;
      this.#hinted.add(wake.journal);
    } else if (wake.of === "any") {
      for (const journal of this.#waiters.keys()) this.#hinted.add(journal);
    } else return;
    this.#wakeUp();
  }

  async #pause(ms: number): Promise<void> {
    if (this.#waiters.size === 0) return;
    const pause = new AbortController();
    this.#wakeUp = () => {
      this.#wakeUp = () => {};
      pause.abort("woken"); // without a reason it would create an exception with a stack
    };
    await this.#options.clock.sleep(ms, pause.signal);
    this.#wakeUp = () => {};
  }

  async #check(journals: readonly number[]): Promise<void> {
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
    const reject = (error: TapeError): void => this.#end(waiter, () => waiter.reject(error));
    if (run === undefined) return reject(notFound("run", id));
    if (run.ended) return this.#deliver(waiter, run.status, run.outcome);
    // Stuck, and no process is about to take up an operator's resolution.
    if (run.status === "STUCK" && run.idle) return reject(await stuckError(store, tenant, id));
    const waited = clock.mono() - waiter.startedAt;
    if (run.status === "RUNNABLE" && waited > noWorkerAfterMs && !serves(run.workflow)) {
      const message = `no process has claimed run ${id} of ${run.workflow} for ${Math.round(waited)} ms`;
      reject(new TapeError("TAPE_NO_WORKER", message, { run: id }));
    }
  }

  #deliver(waiter: Waiter, status: string, outcome: unknown): void {
    const { id: run, resolve, reject } = waiter;
    this.#end(waiter, () => {
      if (isErased(outcome)) reject(erasedError({ run, status }));
      else if (isSealed(outcome)) reject(sealedError(outcome, { run, status }));
      else if (status === "COMPLETED") resolve(outcome);
      else {
        const why = outcome === null || outcome === undefined ? "" : `: ${reasonOf(outcome)}`;
        reject(new TapeError("TAPE_RUN_FAILED", `run ${run} ended as ${status}${why}`, { run, status }, outcome));
      }
    });
  }

  #end(waiter: Waiter, deliver: () => void): void {
    const waiters = this.#waiters.get(waiter.journal);
    if (waiters?.delete(waiter) !== true) return;
    if (waiters.size === 0) this.#waiters.delete(waiter.journal);
    if (this.#waiters.size === 0) this.#wakeUp();
    waiter.unsubscribe();
    deliver();
  }
}
