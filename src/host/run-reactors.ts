import { type Clock, systemClock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import type { Log, LogOption } from "../base/log.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { isRemote } from "../client/remote.ts";
import { environmentToken } from "../client/token.ts";
import { type Identity, identify } from "../lease/identity.ts";
import { LeaseKeeper } from "../lease/keeper.ts";
import { TapeError } from "../model/errors.ts";
import type { ReactorStats } from "../reactor/runner.ts";
import { assertKnownKeys, assertName, durationOf, shown } from "../sdk/validate.ts";
import { createRunner, type Runner } from "../sdk/workflow.ts";
import { withBlobs } from "../store/blob-store.ts";
import type { Store } from "../store/contract/store.ts";
import { closedUnless, openStore } from "./open-store.ts";
import { appLog, assertRunner, drivingOptions } from "./options.ts";
import { ProcessReporter } from "./process-reporter.ts";
import { defineQueues } from "./queues.ts";
import { type ReactorsByName, reactorSpecs } from "./reactor-options.ts";
import { type ReactorSpec, type ReactorsOptions, type RunningReactors, startReactors } from "./reactors.ts";
import type { ServerlessOptions } from "./serverless.ts";
import { Tape } from "./tape.ts";

/** Which reactors to run, and for whose runs. */
export interface RunReactorsOptions {
  /** Drives these workflows and has these effects. Timers and custom reactors need none. */
  readonly runner?: Runner;
  /** Only these reactors, even if they are disabled. Default: all that are enabled. */
  readonly only?: readonly string[];
  /** Settings of reactors, and custom reactors, by name. */
  readonly reactors?: ReactorsByName<Tape>;
  /** Default: "default", or the tenant of the app or of the server's token. */
  readonly tenant?: string;
  /** The token for a store behind a server. Default: TAPE_TOKEN. */
  readonly token?: string;
  /** How long `stop` waits for work in progress. Default 30 s. */
  readonly drain?: Duration;
  /** As in `Tape.open`. Default 60 s. */
  readonly replayPatience?: Duration;
  /** As in `Tape.open`. Default 10 s. */
  readonly slowAfter?: Duration;
  /** As in `Tape.open`. Default: none. */
  readonly publicUrl?: string;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: LogOption;
}

/** Reactors that run until they are stopped. */
export interface Reactors extends AsyncDisposable {
  /** The reactors that run. */
  readonly names: readonly string[];
  /** The handle that custom reactors receive. */
  readonly app: Tape;
  /** Counters by reactor, since the start. */
  readonly stats: Readonly<Record<string, ReactorStats>>;
  /** Claims nothing more, waits for work in progress, and releases every lease. */
  stop(): Promise<void>;
}

const knownKeys = [
  ...["runner", "only", "reactors", "tenant", "token", "drain", "replayPatience", "slowAfter", "publicUrl"],
  ...["clock", "random", "log"],
];

/**
 * Runs reactors beside your services, as `tape-reactors` does: on a store's URL, or on the store and tenant of an app.
 *
 * @example
 * await using reactors = await runReactors("postgres://db/tape", { runner, only: ["recovery", "outbox"] });
 */
export async function runReactors(urlOrApp: string | Tape, options: RunReactorsOptions = {}): Promise<Reactors> {
  const subject = "runReactors";
  assertKnownKeys(subject, options, knownKeys);
  if (typeof urlOrApp !== "string" && !(urlOrApp instanceof Tape)) {
    const message = `${subject}: the first argument is a store's URL or an app, not ${shown(urlOrApp)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "url" });
  }
  if (options.tenant !== undefined) assertName(`${subject}: tenant`, options.tenant);
  if (options.runner !== undefined) assertRunner(subject, options.runner);
  const { only, reactors } = options;
  const drainMs = durationOf(subject, "drain", options.drain, 30_000);
  // Checked before a store is opened; the handle comes later.
  const names = namesOf(
    reactorSpecs(subject, reactors, () => undefined as never, { only }),
    options.runner,
  );
  const log = appLog(options.log, subject);
  const { clock = systemClock, random = systemRandom } = options;
  const start = async (store: Store, tenant: string, given?: Tape): Promise<AssembledReactors> =>
    assembleReactors({
      ...{ store, tenant, log, clock, random, drainMs, driver: drivingOptions(options), ...defined({ app: given }) },
      runner: options.runner ?? createRunner({ workflows: [] }),
      specs: (app) => reactorSpecs(subject, reactors, () => app, { only }),
    });
  if (typeof urlOrApp !== "string") {
    return handleOf(names, await start(urlOrApp.store, options.tenant ?? urlOrApp.tenant, urlOrApp), async () => {});
  }
  const isServer = /^https?:/i.test(urlOrApp);
  const { token = isServer ? environmentToken(urlOrApp, process.env) : undefined } = options;
  const store = withBlobs(await openStore(urlOrApp, { log, clock, random, ...(isServer && { remote: { token } }) }));
  const tenantOf = (): string => options.tenant ?? (isRemote(store) ? store.remote.tenant : "default");
  const assembled = await closedUnless(store, () => start(store, tenantOf()));
  return handleOf(names, assembled, () => store.close());
}

/** Refuses reactors that need a runner and have none. */
function namesOf(specs: readonly ReactorSpec[], runner: Runner | undefined): string[] {
  if (specs.length === 0) throw new TapeError("TAPE_BAD_INPUT", "runReactors: all reactors are disabled", {});
  const needing = specs.find(({ name, custom }) => custom === undefined && name !== "timers");
  if (runner === undefined && needing !== undefined) {
    const message = `runReactors: ${needing.name} needs your runner: pass runner: createRunner({ workflows })`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "runner" });
  }
  return specs.map(({ name }) => name);
}

function handleOf(
  names: readonly string[],
  { app, running, stop }: AssembledReactors,
  close: () => Promise<void>,
): Reactors {
  let stopping: Promise<void> | undefined;
  const stopOnce = (): Promise<void> => {
    stopping ??= stop().finally(close);
    return stopping;
  };
  return {
    names,
    app,
    get stats() {
      return running.loop.stats;
    },
    stop: stopOnce,
    [Symbol.asyncDispose]: stopOnce,
  };
}

export interface AssembledReactors {
  readonly app: Tape;
  readonly identity: Identity;
  readonly running: RunningReactors;
  /** Drains the reactors, removes the process report and closes the handle, but not the store. */
  stop(): Promise<void>;
}

export interface AssemblyOptions extends Pick<ReactorsOptions, "driver" | "drainMs" | "pendingAfterS"> {
  readonly store: Store;
  readonly tenant: string;
  readonly runner: Runner;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /** The reactors, with the handle that custom ones receive. */
  readonly specs: (app: Tape) => readonly ReactorSpec[];
  /** The handle, if the caller has one; it then stays open. */
  readonly app?: Tape;
  /** Alarms for timers that no loop fires. */
  readonly serverless?: ServerlessOptions;
}

/** Reactors on an open store, as `tape-reactors` and {@link runReactors} run them. */
export async function assembleReactors(options: AssemblyOptions): Promise<AssembledReactors> {
  const { store: given, tenant, runner, log, clock, random, driver, drainMs, pendingAfterS, serverless } = options;
  const seams = { clock, random, log };
  const open = (): Promise<Tape> =>
    Tape.open({ store: given, runner, tenant, ...seams, work: false, ...defined({ serverless }) });
  const app = options.app ?? (await open());
  // With alarms, the app's store sets one before a write.
  const { store } = serverless === undefined ? { store: given } : app;
  const close = (): Promise<void> => (options.app === undefined ? app.close() : Promise.resolve());
  const identity = identify(process.env, random);
  const keeper = new LeaseKeeper({ store, identity, tenant, ...seams });
  let running: RunningReactors;
  try {
    // An app that does not drive runs leaves the definitions of a server's queues to the processes that do.
    if (isRemote(store)) await defineQueues({ store, tenant, log }, runner.queues?.values() ?? []);
    const deps = { store, runner, keeper, tenant, ...seams };
    const counted = { ...driver, onModelCall: app.metrics.countModelCall, onReplayed: app.metrics.countReplay };
    const bounds = { drainMs, ...defined({ pendingAfterS }) };
    running = startReactors({ specs: options.specs(app), deps, driver: counted, ...bounds });
  } catch (error) {
    await close();
    throw error;
  }
  const reporter = new ProcessReporter({ store, tenant, identity, clock, log }, () => ({
    stats: [running.loop.stats],
    singletons: [],
    driving: running.driving,
    workflows: running.workflows,
    effects: running.effects,
    queues: running.queues,
    build: running.build,
  }));
  reporter.begin();
  app.metrics.countLeases(keeper.counts);
  const forget = app.metrics.watch({
    get stats() {
      return running.loop.stats;
    },
    get driving() {
      return running.driving;
    },
    get pulse() {
      return stopping ? undefined : running.loop.pulse;
    },
  });
  let stopping = false;
  const stop = async (): Promise<void> => {
    stopping = true;
    if (options.app === undefined) app.metrics.drain();
    await running.stop();
    forget();
    await reporter.end();
    keeper.close();
    await close();
  };
  return { app, identity, running, stop };
}
