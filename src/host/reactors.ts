import type { ReactorSettings } from "../config/schema.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import { RunDriver, type RunDriverOptions } from "../engine/run-driver.ts";
import { LeaseKeeper } from "../lease/keeper.ts";
import { compensation } from "../reactor/compensation.ts";
import { customReactor, type ReactorHandler } from "../reactor/custom.ts";
import { ReactorLoop, type ReactorTuning } from "../reactor/loop.ts";
import { outbox } from "../reactor/outbox.ts";
import type { Reactor } from "../reactor/reactor.ts";
import { reconciler } from "../reactor/reconciler.ts";
import { recovery } from "../reactor/recovery.ts";
import { timers } from "../reactor/timers.ts";

/** A reactor that is to run. */
export interface ReactorSpec<App = unknown> {
  readonly name: string;
  /** Absent: the program's own leases, and the loop's defaults. */
  readonly settings?: ReactorSettings;
  /** The user's function and the handle it gets; under the name of a built-in reactor it replaces that one. */
  readonly custom?: { readonly handler: ReactorHandler<App>; readonly app: App };
}

export interface ReactorsOptions<App> {
  readonly specs: readonly ReactorSpec<App>[];
  /** The keeper is for reactors without settings; the others renew as their settings say, under the same identity. */
  readonly deps: ReactorDeps;
  /** For the driver of runs, which the recovery reactor brings with it. */
  readonly driver: Partial<Omit<RunDriverOptions, keyof ReactorDeps>>;
  /** How long to wait for what is under way when it stops. */
  readonly drainMs: number;
  /** The same for bodies, which may never end; absent: as long as for the rest. */
  readonly bodiesMs?: number;
}

export interface RunningReactors {
  readonly loop: ReactorLoop;
  /** Absent without the recovery reactor. */
  readonly driver: RunDriver | undefined;
  /** Runs driven now. */
  readonly driving: number;
  /** What is driven here; empty without the recovery reactor. */
  readonly workflows: readonly string[];
  /** Effects whose definitions it has. */
  readonly effects: readonly string[];
  /** Claims nothing more, lets what is under way come to rest, gives back the leases. */
  stop(): Promise<void>;
}

/** What a program runs beside its code. */
export const defaultReactors: readonly ReactorSpec[] = [
  { name: "recovery" },
  { name: "reconciler" },
  { name: "outbox" },
  { name: "timers" },
  { name: "compensation" },
];

const maxDriven = 200;

/**
 * The one composition of reactors, in one loop: a program's and a sidecar's differ in their specs alone. Reactors with
 * equal lease timings share a keeper, and so a heartbeat.
 */
export function startReactors<App>(options: ReactorsOptions<App>): RunningReactors {
  const { specs, deps, drainMs, bodiesMs } = options;
  const { store, runner, tenant, clock, random, log } = deps;
  const stopping = new AbortController();
  const keepers = new Map<string, LeaseKeeper>();

  const keeperOf = ({ lease_ttl_s: ttl, heartbeat_s: heartbeat }: ReactorSettings): LeaseKeeper => {
    const key = `${ttl}/${heartbeat}`;
    const timings = { ttlMs: ttl * 1_000, ...(heartbeat === undefined ? {} : { heartbeatMs: heartbeat * 1_000 }) };
    const { identity } = deps.keeper;
    const keeper = keepers.get(key) ?? new LeaseKeeper({ store, identity, tenant, timings, clock, random, log });
    keepers.set(key, keeper);
    return keeper;
  };
  const depsOf = ({ settings }: ReactorSpec<App>): ReactorDeps =>
    settings === undefined ? deps : { ...deps, keeper: keeperOf(settings), retry: retryOf(settings) };

  // First of all: whoever ends sleeps needs the one that drives the sleepers.
  const driven = specs.find(({ name, custom }) => name === "recovery" && custom === undefined);
  const concurrency = driven?.settings?.concurrency ?? options.driver.concurrency ?? maxDriven;
  const driver = driven && new RunDriver({ ...depsOf(driven), ...options.driver, concurrency });

  const build = (spec: ReactorSpec<App>): Reactor => {
    const { name, settings, custom } = spec;
    const own = depsOf(spec);
    if (custom !== undefined) {
      const paced = settings === undefined || isBuiltIn(name) ? {} : { intervalMs: settings.interval_ms };
      const backoff = own.retry?.backoff;
      return customReactor({
        ...{ name, ...custom, keeper: own.keeper, clock, random, log, ...paced },
        ...(backoff && { backoff }),
        stopping: stopping.signal,
      });
    }
    if (name === "recovery" && driver !== undefined) return recovery(driver);
    if (name === "timers") return timers(own, driver);
    return itemReactors[name as keyof typeof itemReactors](own);
  };

  const reactors = specs.map(build);
  const workflows = [...runner.workflows.keys()];
  const tuning = Object.fromEntries(specs.map(({ name, settings }) => [name, settings ? tuningOf(settings) : {}]));
  const loop = new ReactorLoop({ reactors, store, clock, log, tenant, workflows, tuning, drainMs });
  void loop.start();
  return {
    loop,
    driver,
    get driving() {
      return driver?.driving ?? 0;
    },
    get effects() {
      return [...runner.effects.keys()]; // it grows: an effect is registered by its first use
    },
    workflows: driver === undefined ? [] : workflows,
    async stop() {
      stopping.abort();
      // Together: each has its bound.
      await Promise.all([loop.stop(), driver?.drain(drainMs, bodiesMs)]);
      for (const keeper of keepers.values()) keeper.close();
    },
  };
}

/** Those that work on items, and need nothing but their deps. */
const itemReactors = { reconciler, outbox, compensation };

const isBuiltIn = (name: string): boolean => defaultReactors.some((known) => known.name === name);

/** How long a reactor rests at most when it finds nothing; a custom one that is called less often needs no more. */
const idleMs = 5_000;

function retryOf({ backoff, max_attempts: most }: ReactorSettings): NonNullable<ReactorDeps["retry"]> {
  return {
    backoff: { baseMs: backoff.base_ms, capMs: backoff.cap_ms, factor: backoff.factor },
    ...(most === "unlimited" ? {} : { maxAttempts: most }),
  };
}

function tuningOf({
  batch,
  concurrency,
  per_connector: most,
  interval_ms: intervalMs,
}: ReactorSettings): ReactorTuning {
  const knobs = { batch, concurrency, intervalMs: Math.min(intervalMs, idleMs), idleMs };
  return most === undefined ? knobs : { ...knobs, perConnector: most };
}
