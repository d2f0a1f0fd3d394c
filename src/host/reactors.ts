import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { ReactorSettings } from "../config/schema.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import { RunDriver } from "../engine/run-driver.ts";
import type { Identity } from "../lease/identity.ts";
import { LeaseKeeper } from "../lease/keeper.ts";
import { compensation } from "../reactor/compensation.ts";
import { customReactor, type ReactorHandler } from "../reactor/custom.ts";
import { ReactorLoop, type ReactorTuning } from "../reactor/loop.ts";
import { outbox } from "../reactor/outbox.ts";
import type { Reactor } from "../reactor/reactor.ts";
import { reconciler } from "../reactor/reconciler.ts";
import { recovery } from "../reactor/recovery.ts";
import { timers } from "../reactor/timers.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { Store } from "../store/contract/store.ts";
import type { Tape } from "./tape.ts";

/** A reactor that is to run: its settings, and the user's function where it has one. */
export interface ReactorSpec {
  readonly name: string;
  readonly settings: ReactorSettings;
  readonly handler?: ReactorHandler<Tape>;
}

export interface AssembleOptions {
  readonly wanted: readonly ReactorSpec[];
  readonly store: Store;
  readonly runner: Runner;
  /** The handle that handlers get. */
  readonly app: Tape;
  readonly identity: Identity;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly drainMs: number;
  readonly patienceMs: number;
  readonly slowMs: number;
}

export interface RunningReactors {
  readonly loop: ReactorLoop;
  /** Runs driven now. */
  readonly driving: number;
  /** What is driven here; empty without the recovery reactor. */
  readonly workflows: readonly string[];
  /** Effects whose definitions it has. */
  readonly effects: readonly string[];
  /** Claims nothing more, lets what is under way come to rest, gives back the leases. */
  stop(): Promise<void>;
}

/** Reactors with their knobs, in one loop. Those with equal lease timings share a keeper, and so a heartbeat. */
export function startReactors(options: AssembleOptions): RunningReactors {
  const { wanted, store, runner, app, identity, tenant, clock, random, log, drainMs, patienceMs, slowMs } = options;
  const stopping = new AbortController();
  const keepers = new Map<string, LeaseKeeper>();
  let worker: RunDriver | undefined;

  const keeperOf = ({ lease_ttl_s: ttl, heartbeat_s: heartbeat }: ReactorSettings): LeaseKeeper => {
    const key = `${ttl}/${heartbeat}`;
    const timings = { ttlMs: ttl * 1_000, ...(heartbeat === undefined ? {} : { heartbeatMs: heartbeat * 1_000 }) };
    const keeper = keepers.get(key) ?? new LeaseKeeper({ store, identity, tenant, timings, clock, random, log });
    keepers.set(key, keeper);
    return keeper;
  };

  const build = ({ name, settings, handler }: ReactorSpec): Reactor => {
    const { backoff, max_attempts: most } = settings;
    const again = {
      backoff: { baseMs: backoff.base_ms, capMs: backoff.cap_ms, factor: backoff.factor },
      ...(most === "unlimited" ? {} : { maxAttempts: most }),
    };
    const keeper = keeperOf(settings);
    const deps: ReactorDeps = { store, runner, keeper, tenant, clock, random, log, retry: again };
    if (handler !== undefined) {
      const paced = Object.hasOwn(builders, name) || name === "recovery" ? {} : { intervalMs: settings.interval_ms };
      return customReactor({
        ...{ name, handler, app, keeper, clock, random, log, ...paced },
        backoff: again.backoff,
        stopping: stopping.signal,
      });
    }
    if (name === "recovery") {
      worker = new RunDriver({ ...deps, concurrency: settings.concurrency, patienceMs, slowMs });
      return recovery(worker);
    }
    return builders[name as keyof typeof builders](deps);
  };

  const reactors = wanted.map(build);
  const workflows = [...runner.workflows.keys()];
  const knobs = Object.fromEntries(wanted.map(({ name, settings }) => [name, tuningOf(settings)]));
  const loop = new ReactorLoop({ reactors, store, clock, log, tenant, workflows, tuning: knobs, drainMs });
  return {
    loop,
    get driving() {
      return worker?.driving ?? 0;
    },
    get effects() {
      return [...runner.effects.keys()];
    },
    get workflows() {
      return worker === undefined ? [] : [...runner.workflows.keys()];
    },
    async stop() {
      stopping.abort();
      await Promise.all([loop.stop(), worker?.drain(drainMs)]);
      for (const keeper of keepers.values()) keeper.close();
    },
  };
}

const builders = { reconciler, outbox, timers, compensation };

/** How long a reactor rests at most when it finds nothing; a custom one that is called less often needs no more. */
const idleMs = 5_000;

function tuningOf({
  batch,
  concurrency,
  per_connector: most,
  interval_ms: intervalMs,
}: ReactorSettings): ReactorTuning {
  const knobs = { batch, concurrency, intervalMs: Math.min(intervalMs, idleMs), idleMs };
  return most === undefined ? knobs : { ...knobs, perConnector: most };
}
