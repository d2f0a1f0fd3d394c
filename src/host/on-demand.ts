import type { Duration } from "../base/duration.ts";
import { suggest } from "../base/suggest.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import { TapeError } from "../model/errors.ts";
import type { ReactorCounts } from "../reactor/reactor.ts";
import { assertKnownKeys, durationOrThrow, numberOf } from "../sdk/validate.ts";
import { type ComposedReactors, composeReactors, type ReactorsOptions } from "./reactors.ts";

/** How much one call of `app.react` may do. */
export interface ReactOptions {
  /** Maximum number of items, or runs, that it claims. Default 10. */
  readonly limit?: number;
  /**
   * How long it may take. Runs that have not finished by then are released, and another process continues them.
   * Default: as long as the work takes.
   */
  readonly within?: Duration;
  /** Releases what has not finished when it aborts. */
  readonly signal?: AbortSignal;
}

/** What one call of `app.react` found and did. */
export interface ReactCounts extends ReactorCounts {
  /** Whether it found as much as it may claim: another call may find more. */
  readonly more: boolean;
  /** Runs that it released unfinished, because the time was over. */
  readonly surrendered: readonly string[];
}

/** Beyond this, one call would hold more leases than a process can work on. */
const maxLimit = 1_000;
/** How long a run that is called back may take to reach a record before it is released where it is. */
const surrenderMs = 5_000;

/** Alarms are up to 20 s apart: a shorter yield would be over before another process is called. */
const yieldMs = 30_000;
const dayMs = 86_400_000;

/** For the handlers of `durable-tape/push`, which know an app and nothing behind it. */
const onDemands = new WeakMap<object, OnDemand>();

/** The longest time-out of an effect whose definition this app has. */
export const longestEffectMs = (app: object): number => onDemands.get(app)?.longestEffectMs ?? 0;

/** Requests wake these reactors of the app: if recovery is among them, its runs have a process. */
export const servedByRequests = (app: object, reactors: readonly string[]): void =>
  onDemands.get(app)?.serveByRequests(reactors);

/** The app announces work of these reactors to handlers, whose workflows and effects it does not know. */
export const servedElsewhere = (app: object, reactors: readonly string[]): void =>
  onDemands.get(app)?.serveElsewhere(reactors);

/**
 * Reactors that run only when they are called. They are composed at the first call, without loops: a process that is
 * frozen between requests must hold nothing then. Runs are not loaded ahead of their timers, because the caller would
 * wait for the timers.
 */
export class OnDemand {
  readonly #deps: ReactorDeps;
  readonly #options: () => Pick<ReactorsOptions, "specs" | "driver">;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #stopping = new AbortController();
  readonly #byRequests = new Set<string>();
  readonly #elsewhere = new Set<string>();
  #composed: ComposedReactors | undefined;

  constructor(app: object, deps: ReactorDeps, options: () => Pick<ReactorsOptions, "specs" | "driver">) {
    this.#deps = deps;
    this.#options = options;
    onDemands.set(app, this);
  }

  async react(name: string, options: ReactOptions): Promise<ReactCounts> {
    assertKnownKeys("react", options, ["limit", "within", "signal"]);
    const limit = numberOf("react", "limit", options.limit, 10, { min: 1, max: maxLimit });
    const withinMs = options.within === undefined ? undefined : durationOrThrow("react", "within", options.within, 1);
    if (this.#stopping.signal.aborted) throw new TapeError("TAPE_STORE_CLOSED", "react: the app is closed");
    const composed = this.#compose();
    const known = composed.reactors.map((reactor) => reactor.name);
    if (!known.includes(name)) {
      const near = suggest(name, known);
      const hint = near === undefined ? `; the reactors are ${known.join(", ")}` : `; did you mean ${near}?`;
      throw new TapeError("TAPE_BAD_INPUT", `react: unknown reactor ${name}${hint}`, { field: "reactor" });
    }
    const call = this.#call(composed, name, limit, { withinMs, signal: options.signal });
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
    }
  }

  serveByRequests(reactors: readonly string[]): void {
    for (const name of reactors) this.#byRequests.add(name);
  }

  serveElsewhere(reactors: readonly string[]): void {
    for (const name of reactors) this.#elsewhere.add(name);
  }

  /** Whether a handler of this app drives the workflow's runs. */
  serves(workflow: string): boolean {
    const { aborted: isStopping } = this.#stopping.signal;
    return !isStopping && this.#byRequests.has("recovery") && this.#deps.runner.workflows.has(workflow);
  }

  /** Whether handlers that this app wakes drive runs. Which workflows they have is not known here. */
  get drivesElsewhere(): boolean {
    return this.#elsewhere.has("recovery");
  }

  /** Whether handlers that this app wakes call, observe or compensate effects. */
  get callsElsewhere(): boolean {
    return ["outbox", "reconciler", "compensation"].some((name) => this.#elsewhere.has(name));
  }

  /** The longest time-out of an effect whose definition this process has. */
  get longestEffectMs(): number {
    return Math.max(0, ...[...this.#deps.runner.effects.values()].map(({ timeoutMs }) => timeoutMs));
  }

  /** Releases what is in progress, and waits for it. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#composed?.stopping.abort();
    await Promise.allSettled(this.#calls);
    await this.#composed?.driver?.drain(0);
    this.#composed?.close();
  }

  #compose(): ComposedReactors {
    const { specs, driver } = this.#options();
    const onDemand = { ...driver, preload: false, yieldMs };
    this.#composed ??= composeReactors({ specs, driver: onDemand, deps: this.#deps });
    return this.#composed;
  }

  async #call({ reactors, driver }: ComposedReactors, name: string, limit: number, bound: Bound): Promise<ReactCounts> {
    if (name !== "recovery" || driver === undefined) {
      const counts = await reactors.find((reactor) => reactor.name === name)!.runOnce(limit);
      return { ...counts, more: counts.found >= limit, surrendered: [] };
    }
    const { found, done, surrender } = await driver.poll(limit);
    const surrendered = (await this.#inTime(done, bound))
      ? []
      : await surrender(Math.min(surrenderMs, bound.withinMs ?? surrenderMs));
    const { lost, lagMs } = await done;
    return { found, done: found - lost, failed: lost, lagMs, more: found >= limit, surrendered };
  }

  /** Whether the work was done before the time was over, the caller gave up, or the app was closed. */
  async #inTime(done: Promise<unknown>, { withinMs = dayMs, signal }: Bound): Promise<boolean> {
    const finished = new AbortController();
    const signals = [this.#stopping.signal, finished.signal, ...(signal === undefined ? [] : [signal])];
    const late = this.#deps.clock.sleep(withinMs, AbortSignal.any(signals)).then(() => false);
    const inTime = await Promise.race([done.then(() => true), late]);
    finished.abort(); // a pending sleep would keep the process alive
    return inTime;
  }
}

interface Bound {
  readonly withinMs: number | undefined;
  readonly signal: AbortSignal | undefined;
}
