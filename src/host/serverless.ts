import { AlarmKeeper } from "../alarm/alarm-keeper.ts";
import { type Alarms, dueAlarm, nextBucket } from "../alarm/alarms.ts";
import { armedStore } from "../alarm/armed-store.ts";
import { type AlarmCounts, countedAlarms } from "../alarm/counted-alarms.ts";
import type { Clock } from "../base/clock.ts";
import type { Duration } from "../base/duration.ts";
import type { Log } from "../base/log.ts";
import { errorFields, reasonOf } from "../base/reason.ts";
import { buildClaimOf } from "../engine/own-build.ts";
import { plainReactor } from "../model/build.ts";
import { TapeError } from "../model/errors.ts";
import { assertKnownKeys, durationOf, shown } from "../sdk/validate.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { AgendaItem, Store, WakeHint } from "../store/contract/store.ts";
import type { ReactCounts, ReactOptions } from "./on-demand.ts";

/** For a deployment without a process that always runs. */
export interface ServerlessOptions {
  /** Calls the sweep handler at a time, see `cloudTasksAlarms` and `natsAlarms`. */
  readonly alarms: Alarms;
  /** Sends wake-ups for work that this process creates. Without it, the next alarm finds the work. */
  readonly waker?: { wake(reactor: string, requests: number): Promise<void> };
}

/** How long a sweep may take. */
export interface SweepOptions {
  /** Default 50 s. The alarm service must wait for longer. */
  readonly within?: Duration;
  /** Ends the sweep early: runs are released, and alarms are set. */
  readonly signal?: AbortSignal;
}

/** What a sweep found and did. */
export interface SweepCounts {
  /** Items that were due. */
  readonly found: number;
  /** Items that were worked on. */
  readonly done: number;
  /** Items whose work failed; they are tried again later. */
  readonly failed: number;
  /** When the alarm fires that this sweep has set; null: nothing is on the agenda, and none was set. */
  readonly alarmInMs: number | null;
}

export function checkServerless(subject: string, options: unknown): void {
  if (options === undefined) return;
  const { alarms, waker } = (options ?? {}) as Partial<ServerlessOptions>;
  const isFine = typeof alarms?.set === "function" && (waker === undefined || typeof waker.wake === "function");
  if (!isFine) {
    const message = `${subject}: serverless is { alarms, waker? }, not ${shown(options)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "serverless" });
  }
  assertKnownKeys(`${subject}: serverless`, options as object, ["alarms", "waker"]);
}

/** Timers first, so that recovery drives the runs that they wake. The others follow together. */
const order = ["timers", "recovery", "outbox", "reconciler", "compensation"] as const;
/** What one round of a sweep claims. Many timers may be due at one moment: fifty runs a round woke the last too late. */
const limits: Readonly<Record<string, number>> = { timers: 1_000, recovery: 250 };
const defaultLimit = 50;
/** Something that is due this soon is waited for: another alarm would cost more. */
const waitMs = 2_000;

/** The store of a serverless app, and what makes its reactors run. */
export function armedFor(
  inner: Store,
  options: ServerlessOptions,
  deps: Pick<ServerlessDeps, "tenant" | "clock" | "log">,
): { readonly store: Store; readonly counts: AlarmCounts; start(deps: ServerlessDeps): Serverless } {
  const { alarms, counts } = countedAlarms(options.alarms);
  const keeper = new AlarmKeeper({ ...deps, alarms, transactionBoundMs: inner.transactionBoundMs });
  const start = (all: ServerlessDeps): Serverless => new Serverless({ ...options, alarms }, keeper, all);
  return { store: armedStore(inner, keeper), counts, start };
}

export function sweepOf(serverless: Serverless | undefined): Serverless {
  if (serverless !== undefined) return serverless;
  throw new TapeError("TAPE_BAD_INPUT", "sweep: the app has no option serverless", { field: "serverless" });
}

interface ServerlessDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly runner: Runner;
  readonly clock: Clock;
  readonly log: Log;
  readonly react: (reactor: string, options: ReactOptions) => Promise<ReactCounts>;
}

/**
 * An app that relies on alarms. Its store arms every write ({@link AlarmKeeper}); an alarm calls {@link sweep}, which
 * works on everything that is due and sets the alarm for what is due next. If nothing is, it sets none.
 */
export class Serverless {
  readonly #options: ServerlessOptions;
  readonly #deps: ServerlessDeps;
  readonly #keeper: AlarmKeeper;
  readonly #unsubscribe: () => void;
  /** Reactors to wake, not sent yet. */
  readonly #hints = new Set<string>();
  #sending: Promise<void> | undefined;
  #sweeps = 0;

  constructor(options: ServerlessOptions, keeper: AlarmKeeper, deps: ServerlessDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#keeper = keeper;
    this.#unsubscribe = deps.store.onWake((wake) => this.#onWake(wake));
  }

  async sweep(options: SweepOptions = {}): Promise<SweepCounts> {
    assertKnownKeys("sweep", options, ["within", "signal"]);
    const { clock } = this.#deps;
    const until = clock.mono() + durationOf("sweep", "within", options.within, 50_000);
    this.#sweeps++;
    try {
      return await this.#sweep(until, options.signal);
    } finally {
      this.#sweeps--;
      this.#send();
    }
  }

  /** Sends the wake-ups that are still waiting. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#send();
    await this.#sending;
  }

  async #sweep(until: number, signal: AbortSignal | undefined): Promise<SweepCounts> {
    const { clock } = this.#deps;
    const sum = { found: 0, done: 0, failed: 0 };
    for (;;) {
      this.#hints.clear(); // the agenda has what they announce
      const agenda = await this.#agenda();
      const isDue = agenda.some(({ dueInMs }) => dueInMs <= 0);
      const laterMs = Math.min(...agenda.map(({ dueInMs }) => (dueInMs > 0 ? dueInMs : Number.POSITIVE_INFINITY)));
      const leftMs = signal?.aborted ? 0 : until - clock.mono();
      if (isDue && leftMs > 0) {
        const round = await this.#round(leftMs, signal);
        for (const key of ["found", "done", "failed"] as const) sum[key] += round[key];
        if (round.found > 0) continue;
      } else if (!isDue && laterMs <= waitMs && laterMs < leftMs) {
        await clock.sleep(laterMs + 1, signal);
        continue;
      }
      return { ...sum, alarmInMs: await this.#setNext(isDue, laterMs) };
    }
  }

  #agenda(): Promise<AgendaItem[]> {
    const { store, tenant, runner } = this.#deps;
    const queues = [...(runner.queues?.keys() ?? [])];
    return store.read.agenda(tenant, [...runner.workflows.keys()], queues, buildClaimOf(runner));
  }

  async #round(leftMs: number, signal: AbortSignal | undefined): Promise<Omit<SweepCounts, "alarmInMs">> {
    const react = (name: string): Promise<ReactCounts> =>
      this.#deps.react(name, {
        limit: limits[name] ?? defaultLimit,
        within: Math.max(1, Math.floor(leftMs)),
        ...(signal && { signal }),
      });
    const [first, ...others] = order;
    const counts = [await react(first), ...(await Promise.all(others.map(react)))];
    const sum = (key: "found" | "done" | "failed"): number => counts.reduce((all, one) => all + one[key], 0);
    return { found: sum("found"), done: sum("done"), failed: sum("failed") };
  }

  /**
   * What stays due is not claimable here, or there was no time for it: it is checked again after a while. TAPE_UNARMED
   * makes the caller of the sweep repeat it.
   */
  async #setNext(isDue: boolean, laterMs: number): Promise<number | null> {
    const { clock, tenant } = this.#deps;
    const { alarms } = this.#options;
    if (!isDue && laterMs === Number.POSITIVE_INFINITY) return null;
    const now = clock.wall();
    const { inMs, name } = isDue ? nextBucket(now, this.#keeper.boundMs) : dueAlarm(now, laterMs, alarms.furthestMs);
    try {
      await alarms.set({ tenant, inMs, name });
      return inMs;
    } catch (error) {
      const message = `the next alarm could not be set: ${reasonOf(error)}`;
      throw new TapeError("TAPE_UNARMED", message, { tenant }, error);
    }
  }

  /** Only hints of own writes: another process sends wake-ups for its own. */
  #onWake(wake: WakeHint): void {
    if (wake.of !== "reactor" || (wake.tenant ?? this.#deps.tenant) !== this.#deps.tenant) return;
    if (!this.#keeper.isWriting) return;
    this.#hints.add(plainReactor(wake.reactor));
    if (this.#sweeps === 0) this.#deps.clock.immediate(() => this.#send());
  }

  #send(): void {
    if (this.#sweeps > 0 || this.#hints.size === 0) return;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#hints.size > 0) {
      const reactors = [...this.#hints];
      this.#hints.clear();
      await Promise.all(reactors.map((reactor) => this.#wake(reactor)));
    }
  }

  /** A timer is rarely due at once: its alarm is set instead of a wake-up. */
  async #wake(reactor: string): Promise<void> {
    const { log } = this.#deps;
    try {
      if (reactor !== "timers") return await this.#options.waker?.wake(reactor, 1);
      const [isDue, laterMs] = await this.#timers();
      if (isDue) await this.#options.waker?.wake(reactor, 1);
      else await this.#setNext(false, laterMs);
    } catch (error) {
      log("warn", "alarm.wake_failed", { reactor, ...errorFields(error), next: "The next alarm finds the work." });
    }
  }

  async #timers(): Promise<readonly [isDue: boolean, laterMs: number]> {
    const due = (await this.#agenda()).flatMap(({ reactor, dueInMs }) => (reactor === "timers" ? [dueInMs] : []));
    const laterMs = Math.min(Number.POSITIVE_INFINITY, ...due);
    return [laterMs <= 0, laterMs];
  }
}
