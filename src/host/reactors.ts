import type { BackoffOptions } from "../base/backoff.ts";
import { defined } from "../base/defined.ts";
import type { ReactorSettings } from "../config/schema.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import { RunDriver, type RunDriverOptions } from "../engine/run-driver.ts";
import { LeaseKeeper } from "../lease/keeper.ts";
import type { BuildClaim } from "../model/build.ts";
import { compensation } from "../reactor/compensation.ts";
import { customReactor, type ReactorContext, type ReactorHandler } from "../reactor/custom.ts";
import { type LoopOptions, ReactorLoop } from "../reactor/loop.ts";
import { outbox } from "../reactor/outbox.ts";
import type { Reactor } from "../reactor/reactor.ts";
import { reconciler } from "../reactor/reconciler.ts";
import { recovery } from "../reactor/recovery.ts";
import { type RemoteOptions, remoteReactor } from "../reactor/remote.ts";
import type { ReactorTuning } from "../reactor/runner.ts";
import { timers } from "../reactor/timers.ts";
import { gateSchemas } from "../sdk/json-schema.ts";

/** A reactor to start. */
export interface ReactorSpec {
  readonly name: string;
  /** Absent: the program's own lease timings and the loop's defaults. */
  readonly settings?: ReactorSettings;
  /** The user's function, with its handle. Under a built-in name it replaces that reactor. */
  readonly custom?: (context: ReactorContext) => ReturnType<ReactorHandler<never>>;
  /** Between two calls of `custom`, if there are no settings. */
  readonly intervalMs?: number;
  /** Whether a call of `custom` is due before its interval has passed. */
  readonly isRequested?: () => boolean;
}

export interface ReactorsOptions {
  readonly specs: readonly ReactorSpec[];
  /** The keeper serves reactors without settings; the others renew by their settings, under the same identity. */
  readonly deps: ReactorDeps;
  /** For the run driver, which belongs to the recovery reactor. */
  readonly driver: Partial<Omit<RunDriverOptions, keyof ReactorDeps>>;
  /** After how many seconds a due outbox effect is observed before it is sent; absent: the reconciler's setting. */
  readonly pendingAfterS?: number;
  /** How long `stop` waits for work in progress. */
  readonly drainMs: number;
  /** The same for workflow bodies, which may never end; absent: `drainMs`. */
  readonly bodiesMs?: number;
}

export interface RunningReactors {
  readonly loop: ReactorLoop;
  /** Absent without the recovery reactor. */
  readonly driver: RunDriver | undefined;
  /** Runs driven now. */
  readonly driving: number;
  /** Workflows that are driven here; empty without the recovery reactor. */
  readonly workflows: readonly string[];
  /** Effects whose definitions this process has. */
  readonly effects: readonly string[];
  /** Queues whose runs it admits. */
  readonly queues: readonly string[];
  /** JSON Schemas of the values that its gates accept, by name. */
  readonly gates: Readonly<Record<string, unknown>>;
  /** Its build, if it pins workflows. */
  readonly build: string | undefined;
  /** Claims nothing more, drains work in progress and releases the leases. */
  stop(): Promise<void>;
}

/** The reactors of a program. */
export const defaultReactors: readonly ReactorSpec[] = [
  { name: "recovery" },
  { name: "reconciler" },
  { name: "outbox" },
  { name: "timers" },
  { name: "compensation" },
];

const maxDriven = 200;

/** Reactors without a loop. */
export interface ComposedReactors {
  readonly reactors: readonly Reactor[];
  /** Absent without the recovery reactor. */
  readonly driver: RunDriver | undefined;
  /** Aborts the handlers of custom reactors. */
  readonly stopping: AbortController;
  /** Ends the heartbeats of its own keepers. */
  close(): void;
}

/**
 * The only composition of reactors: a program and a sidecar differ in their specs alone. Reactors with equal lease
 * timings share a keeper, and with it a heartbeat.
 */
export function composeReactors(options: Omit<ReactorsOptions, "drainMs" | "bodiesMs">): ComposedReactors {
  const { specs, deps } = options;
  const { store, tenant, clock, random, log } = deps;
  const stopping = new AbortController();
  const keepers = new Map<string, LeaseKeeper>();

  const keeperOf = ({ lease_ttl_s: ttl, heartbeat_s: heartbeat }: ReactorSettings): LeaseKeeper => {
    const key = `${ttl}/${heartbeat}`;
    const timings = { ttlMs: ttl * 1_000, ...(heartbeat === undefined ? {} : { heartbeatMs: heartbeat * 1_000 }) };
    const { identity, counts } = deps.keeper;
    const keeper =
      keepers.get(key) ?? new LeaseKeeper({ store, identity, tenant, timings, clock, random, log, counts });
    keepers.set(key, keeper);
    return keeper;
  };
  const depsOf = ({ settings }: ReactorSpec): ReactorDeps =>
    settings === undefined ? deps : { ...deps, keeper: keeperOf(settings), retry: retryOf(settings) };

  const pendingAfterS =
    options.pendingAfterS ?? specs.find(({ name }) => name === "reconciler")?.settings?.pending_after_s;
  const pending = pendingAfterS === undefined ? {} : { pendingAfterMs: Math.ceil(pendingAfterS * 1_000) };

  // The driver comes first: the timers reactor ends sleeps through it.
  const recoverySpec = specs.find(({ name, custom }) => name === "recovery" && custom === undefined);
  const concurrency = recoverySpec?.settings?.concurrency ?? options.driver.concurrency ?? maxDriven;
  const driver = recoverySpec && new RunDriver({ ...depsOf(recoverySpec), ...options.driver, concurrency });

  const build = (spec: ReactorSpec): Reactor => {
    const { name, custom } = spec;
    const own = depsOf(spec);
    if (custom !== undefined) return ownReactor({ ...spec, custom }, own, stopping.signal);
    if (name === "recovery" && driver !== undefined) return recovery(driver);
    if (name === "timers") return timers(own, driver);
    return itemReactors[name as keyof typeof itemReactors](own, pending);
  };

  const reactors = specs.map(build);
  const close = (): void => {
    for (const keeper of keepers.values()) keeper.close();
  };
  return { reactors, driver, stopping, close };
}

/** Starts reactors in one loop. */
export function startReactors(options: ReactorsOptions): RunningReactors {
  const { specs, deps, drainMs, bodiesMs } = options;
  const { store, runner, tenant, clock, random, log } = deps;
  const { reactors, driver, stopping, close } = composeReactors(options);
  const workflows = [...runner.workflows.keys()];
  const tuning = Object.fromEntries(specs.map(({ name, settings }) => [name, settings ? tuningOf(settings) : {}]));
  const queues = driver?.queues ?? [];
  const build = (): BuildClaim | undefined => driver?.build;
  const served = { tenant, workflows, queues, build };
  const loop = new ReactorLoop({ reactors, store, clock, log, ...served, tuning, drainMs, random });
  void loop.start();
  return {
    loop,
    driver,
    get driving() {
      return driver?.driving ?? 0;
    },
    get effects() {
      return [...runner.effects.keys()]; // the list grows: an effect is registered at its first use
    },
    get gates() {
      return gateSchemas(runner);
    },
    workflows: driver === undefined ? [] : workflows,
    queues,
    build: driver?.build?.build,
    async stop() {
      stopping.abort();
      // In parallel, because each has its own bound.
      await Promise.all([loop.stop(), driver?.drain(drainMs, bodiesMs)]);
      close();
    },
  };
}

/** An announcer polls for the whole deployment; the handlers poll nothing. */
const remoteIdleMs = 6_000;

/** A loop that runs no reactors here: it wakes the handlers of those that run elsewhere. */
export function remoteLoop(
  names: readonly string[],
  options: Omit<RemoteOptions, "name"> & Pick<LoopOptions, "store" | "random" | "log" | "queues">,
): ReactorLoop {
  const reactors = names.map((name) => remoteReactor({ ...options, name }));
  return new ReactorLoop({ ...options, reactors, batch: 1, idleMs: remoteIdleMs });
}

/** A reactor of the user's. One with a name of its own is called at its interval. */
function ownReactor(
  { name, settings, custom, intervalMs, isRequested }: ReactorSpec & Required<Pick<ReactorSpec, "custom">>,
  { keeper, clock, random, log, retry }: ReactorDeps,
  stopping: AbortSignal,
): Reactor {
  const handler = (_app: undefined, context: ReactorContext) => custom(context);
  const options = { name, app: undefined, handler, keeper, clock, random, log, stopping };
  if (settings === undefined) return customReactor({ ...options, ...defined({ intervalMs, isRequested }) });
  const maxStallS = settings.max_stall_s;
  return customReactor({
    ...options,
    ...(!isBuiltIn(name) && { intervalMs: settings.interval_ms }),
    ...(retry?.backoff && { backoff: retry.backoff }),
    takeover: takeoverOf(settings),
    ...(maxStallS !== undefined && { maxStallMs: Math.ceil(maxStallS * 1_000) }),
  });
}

/** Reactors that work on items and need only their deps. */
const itemReactors = { reconciler, outbox, compensation };

const isBuiltIn = (name: string): boolean => defaultReactors.some((known) => known.name === name);

/** First pause of an idle reactor; doubles up to its interval. */
const firstPauseMs = 100;

const takeoverOf = ({ takeover }: ReactorSettings): BackoffOptions => ({
  baseMs: takeover.base_ms,
  capMs: takeover.cap_ms,
});

function retryOf({ backoff, max_attempts: maxAttempts }: ReactorSettings): NonNullable<ReactorDeps["retry"]> {
  return {
    backoff: { baseMs: backoff.base_ms, capMs: backoff.cap_ms, factor: backoff.factor },
    ...(maxAttempts === "unlimited" ? {} : { maxAttempts }),
  };
}

function tuningOf(settings: ReactorSettings): ReactorTuning {
  const { batch, concurrency, per_connector: perConnector, interval_ms: idleMs } = settings;
  const intervalMs = Math.min(firstPauseMs, idleMs);
  const tuning = { batch, concurrency, intervalMs, idleMs, takeover: takeoverOf(settings) };
  return perConnector === undefined ? tuning : { ...tuning, perConnector };
}
