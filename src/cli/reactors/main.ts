import { systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { type Log, logOf } from "../../base/log.ts";
import { systemRandom } from "../../base/random.ts";
import { reasonOf } from "../../base/reason.ts";
import { suggest } from "../../base/suggest.ts";
import { isRemote } from "../../client/remote.ts";
import { type LoadedConfig, loadConfig } from "../../config/load.ts";
import { maskUrl } from "../../config/mask.ts";
import type { ReactorSettings } from "../../config/schema.ts";
import { openStore } from "../../host/open-store.ts";
import { ProcessReporter, type ProcessReporterDeps } from "../../host/process-reporter.ts";
import { defineQueues } from "../../host/queues.ts";
import { type ReactorSpec, type RunningReactors, startReactors } from "../../host/reactors.ts";
import { Tape } from "../../host/tape.ts";
import { identify } from "../../lease/identity.ts";
import { LeaseKeeper } from "../../lease/keeper.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { ReactorHandler } from "../../reactor/custom.ts";
import { createRunner, type Runner } from "../../sdk/workflow.ts";
import { complain } from "../screen.ts";
import { assertShared, folderOf, remoteOf, storeUrl, tenantOf } from "../store-settings.ts";
import { version } from "../version.ts";
import { loadFunction, loadRunner } from "./module.ts";
import { parseOptions, type ReactorsOptions, usage } from "./options.ts";

/** A configured reactor, with its handler if it is a custom one. */
interface ChosenReactor {
  readonly name: string;
  readonly settings: ReactorSettings;
  readonly handler?: ReactorHandler<Tape>;
}

/** How often the stats of each reactor are logged. */
const statsEveryMs = 60_000;

/** Exit codes: 0 stopped on request, 1 failure, 2 usage error. */
export async function main(argv: readonly string[]): Promise<number> {
  const options = parseOptions(argv);
  if (options === "help" || options === "version") {
    process.stdout.write(options === "help" ? usage : `${version}\n`);
    return 0;
  }
  if ("fault" in options) {
    complain(process.stderr, `TAPE_BAD_INPUT: ${options.fault}`, "Run tape-reactors --help for all options.");
    return 2;
  }
  try {
    return await run(options);
  } catch (error) {
    if (!isTapeError(error)) throw error;
    complain(process.stderr, reasonOf(error), error.next);
    return 1;
  }
}

async function run({ config: file, only, flags }: ReactorsOptions): Promise<number> {
  const cwd = process.cwd();
  const config = loadConfig({ cwd, env: process.env, flags, ...defined({ file }) });
  const { tape, project } = config.settings;
  const log = logOf(tape.log.level);
  for (const message of config.warnings) log("warn", "config.warning", { message });
  const chosen = await chosenReactors(config, only, cwd);
  const runner = await runnerOf(config, chosen, cwd);
  const url = storeUrl(config, cwd);
  assertShared(url);
  const stop = stopSignal(log);
  const store = await openStore(url, { log, ...remoteOf(config, url) });
  const identity = identify(process.env, systemRandom);
  let app: Tape | undefined;
  let reactors: RunningReactors | undefined;
  let reporter: ProcessReporter | undefined;
  try {
    const tenant = tenantOf(store, config);
    app = await Tape.open({ store, runner, tenant, log, work: false });
    const seams = { clock: systemClock, random: systemRandom, log };
    // An app that does not drive runs leaves the definitions of a server's queues to the processes that do.
    if (isRemote(store)) await defineQueues({ store, tenant, log }, runner.queues?.values() ?? []);
    const keeper = new LeaseKeeper({ store, identity, tenant, ...seams });
    reactors = startReactors({
      specs: specsOf(chosen, app),
      deps: { store, runner, keeper, tenant, ...seams },
      driver: {
        ...{ patienceMs: tape.replay_patience_s * 1_000, slowMs: tape.slow_after_s * 1_000 },
        ...defined({ publicUrl: tape.server.public_url?.replace(/\/+$/, "") }),
      },
      drainMs: tape.drain_s * 1_000,
    });
    const names = chosen.map(({ name }) => name);
    const { label } = identity;
    const sources = { store: maskUrl(url), config: config.file, project: project.name };
    log("info", "reactors.started", { reactors: names, replica: label, tenant, ...sources });
    reporter = reporterOf(reactors, { store, tenant, identity, ...seams });
    await logStatsUntil(reactors, stop, log);
  } finally {
    await reactors?.stop();
    await reporter?.end();
    if (reactors !== undefined) log("info", "reactors.stopped", { stats: reactors.loop.stats });
    await app?.close();
    await store.close();
  }
  return 0;
}

/** The reactors to run, with their handlers loaded: a handler that cannot be loaded fails the start, not a later poll. */
async function chosenReactors(
  config: LoadedConfig,
  only: readonly string[] | undefined,
  cwd: string,
): Promise<ChosenReactor[]> {
  const { reactors } = config.settings.tape;
  for (const name of only ?? []) {
    if (Object.hasOwn(reactors, name)) continue;
    const near = suggest(name, Object.keys(reactors));
    const hint =
      near === undefined ? `; the reactors are ${Object.keys(reactors).join(", ")}` : `; did you mean ${near}?`;
    throw new TapeError("TAPE_BAD_CONFIG", `--only: unknown reactor ${name}${hint}`, { name });
  }
  const chosen = Object.entries(reactors).filter(([name, { enabled }]) => only?.includes(name) ?? enabled);
  if (chosen.length === 0) throw new TapeError("TAPE_BAD_CONFIG", "tape.reactors: all reactors are disabled");
  return Promise.all(
    chosen.map(async ([name, settings]) => {
      if (settings.handler === undefined) return { name, settings };
      const folder = folderOf(config, `tape.reactors.${name}.handler`, cwd);
      const handler = await loadFunction(settings.handler, folder, `handler of ${name}`);
      return { name, settings, handler: handler as unknown as ReactorHandler<Tape> };
    }),
  );
}

const specsOf = (chosen: readonly ChosenReactor[], app: Tape): ReactorSpec<Tape>[] =>
  chosen.map(({ handler, ...spec }) => (handler === undefined ? spec : { ...spec, custom: { handler, app } }));

/** Timers and custom handlers need no runner. */
async function runnerOf(config: LoadedConfig, chosen: readonly ChosenReactor[], cwd: string): Promise<Runner> {
  const reference = config.settings.agent.runner_factory;
  if (reference !== undefined) return loadRunner(reference, folderOf(config, "agent.runner_factory", cwd));
  const needing = chosen.find(({ name, handler }) => handler === undefined && name !== "timers");
  if (needing === undefined) return createRunner({ workflows: [] });
  const message = `${needing.name} needs your runner: set --runner-from FILE#EXPORT or agent.runner_factory`;
  throw new TapeError("TAPE_BAD_CONFIG", message, { reactor: needing.name });
}

function stopSignal(log: Log): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    const onSignal = (signal: string): void => {
      if (stopping) {
        log("error", "reactors.killed", { signal });
        process.exit(1); // the second signal forces an exit: the leases expire
      }
      stopping = true;
      log("info", "reactors.stopping", { signal });
      resolve();
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}

function reporterOf(reactors: RunningReactors, deps: ProcessReporterDeps): ProcessReporter {
  const reporter = new ProcessReporter(deps, () => ({
    stats: [reactors.loop.stats],
    singletons: [],
    driving: reactors.driving,
    workflows: reactors.workflows,
    effects: reactors.effects,
    queues: reactors.queues,
  }));
  reporter.begin();
  return reporter;
}

/** Waits for the signal, and logs the stats once a minute until then. */
async function logStatsUntil({ loop }: RunningReactors, stop: Promise<void>, log: Log): Promise<void> {
  const stopped = new AbortController();
  void stop.then(() => stopped.abort());
  while (!stopped.signal.aborted) {
    await systemClock.sleep(statsEveryMs, stopped.signal);
    if (!stopped.signal.aborted) log("info", "reactors.stats", { stats: loop.stats });
  }
}
