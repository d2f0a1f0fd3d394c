import { systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { type Log, logOf } from "../../base/log.ts";
import { systemRandom } from "../../base/random.ts";
import { reasonOf } from "../../base/reason.ts";
import { suggest } from "../../base/suggest.ts";
import { type LoadedConfig, loadConfig } from "../../config/load.ts";
import { maskUrl } from "../../config/mask.ts";
import type { ReactorSettings } from "../../config/schema.ts";
import { isMemoryUrl, openStore } from "../../host/open-store.ts";
import { ProcessReporter, type ProcessReporterDeps } from "../../host/process-reporter.ts";
import { type ReactorSpec, type RunningReactors, startReactors } from "../../host/reactors.ts";
import { Tape } from "../../host/tape.ts";
import { identify } from "../../lease/identity.ts";
import { LeaseKeeper } from "../../lease/keeper.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { ReactorHandler } from "../../reactor/custom.ts";
import { createRunner, type Runner } from "../../sdk/workflow.ts";
import { complain } from "../screen.ts";
import { version } from "../version.ts";
import { loadFunction, loadRunner } from "./module.ts";
import { parseOptions, type ReactorsOptions, usage } from "./options.ts";
import { folderOf, remoteOf, storeUrl, tenantOf } from "./place.ts";

/** A reactor of the settings, and the user's function where it has one. */
interface WantedReactor {
  readonly name: string;
  readonly settings: ReactorSettings;
  readonly handler?: ReactorHandler<Tape>;
}

/** How often the counters of each reactor go into the log. */
const statsEveryMs = 60_000;

/** Exit codes: 0 stopped as it was told, 1 refused or failed, 2 usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const options = parseOptions(argv);
  if (options === "help" || options === "version") {
    process.stdout.write(options === "help" ? usage : `${version}\n`);
    return 0;
  }
  if ("fault" in options) {
    complain(process.stderr, `TAPE_BAD_INPUT: ${options.fault}`, "Run tape-reactors --help to see what there is.");
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
  const wanted = await wantedReactors(config, only, cwd);
  const runner = await runnerOf(config, wanted, cwd);
  const url = storeUrl(config, cwd);
  if (isMemoryUrl(url)) {
    throw new TapeError("TAPE_BAD_CONFIG", "tape.store.url: what is in memory, no other process can see", { url });
  }
  const stop = stopSignal(log);
  const store = await openStore(url, { log, ...remoteOf(config, url) });
  const identity = identify(process.env, systemRandom);
  let app: Tape | undefined;
  let reactors: RunningReactors | undefined;
  let presence: ProcessReporter | undefined;
  try {
    const tenant = tenantOf(store, config);
    app = await Tape.open({ store, runner, tenant, log, work: false });
    const seams = { clock: systemClock, random: systemRandom, log };
    const keeper = new LeaseKeeper({ store, identity, tenant, ...seams });
    reactors = startReactors({
      specs: specsOf(wanted, app),
      deps: { store, runner, keeper, tenant, ...seams },
      driver: { patienceMs: tape.replay_patience_s * 1_000, slowMs: tape.slow_after_s * 1_000 },
      drainMs: tape.drain_s * 1_000,
    });
    const names = wanted.map(({ name }) => name);
    const { label } = identity;
    const place = { store: maskUrl(url), config: config.file, project: project.name };
    log("info", "reactors.started", { reactors: names, replica: label, tenant, ...place });
    presence = reporterOf(reactors, { store, tenant, identity, ...seams });
    await logStatsUntil(reactors, stop, log);
  } finally {
    await reactors?.stop();
    await presence?.end();
    if (reactors !== undefined) log("info", "reactors.stopped", { tallies: reactors.loop.stats });
    await app?.close();
    await store.close();
  }
  return 0;
}

/** The reactors to run, with their handlers loaded: what cannot be loaded stops the start, not the first look. */
async function wantedReactors(
  config: LoadedConfig,
  only: readonly string[] | undefined,
  cwd: string,
): Promise<WantedReactor[]> {
  const { reactors } = config.settings.tape;
  for (const name of only ?? []) {
    if (Object.hasOwn(reactors, name)) continue;
    const near = suggest(name, Object.keys(reactors));
    const hint = near === undefined ? `; there are ${Object.keys(reactors).join(", ")}` : `; did you mean ${near}?`;
    throw new TapeError("TAPE_BAD_CONFIG", `--only: there is no reactor ${name}${hint}`, { name });
  }
  const chosen = Object.entries(reactors).filter(([name, { enabled }]) => only?.includes(name) ?? enabled);
  if (chosen.length === 0) throw new TapeError("TAPE_BAD_CONFIG", "tape.reactors: every one of them is switched off");
  return Promise.all(
    chosen.map(async ([name, settings]) => {
      if (settings.handler === undefined) return { name, settings };
      const folder = folderOf(config, `tape.reactors.${name}.handler`, cwd);
      const handler = await loadFunction(settings.handler, folder, `handler of ${name}`);
      return { name, settings, handler: handler as unknown as ReactorHandler<Tape> };
    }),
  );
}

const specsOf = (wanted: readonly WantedReactor[], app: Tape): ReactorSpec<Tape>[] =>
  wanted.map(({ handler, ...spec }) => (handler === undefined ? spec : { ...spec, custom: { handler, app } }));

/** Timers and handlers of one's own execute no code of the runner's. */
async function runnerOf(config: LoadedConfig, wanted: readonly WantedReactor[], cwd: string): Promise<Runner> {
  const reference = config.settings.agent.runner_factory;
  if (reference !== undefined) return loadRunner(reference, folderOf(config, "agent.runner_factory", cwd));
  const without = wanted.find(({ name, handler }) => handler === undefined && name !== "timers");
  if (without === undefined) return createRunner({ workflows: [] });
  const message = `${without.name} needs your code: give --runner-from FILE#EXPORT or agent.runner_factory`;
  throw new TapeError("TAPE_BAD_CONFIG", message, { reactor: without.name });
}

function stopSignal(log: Log): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    const onSignal = (signal: string): void => {
      if (asked) {
        log("error", "reactors.killed", { signal });
        process.exit(1); // somebody is impatient: leases run out by themselves
      }
      asked = true;
      log("info", "reactors.stopping", { signal });
      resolve();
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}

function reporterOf(reactors: RunningReactors, deps: ProcessReporterDeps): ProcessReporter {
  const presence = new ProcessReporter(deps, () => ({
    tallies: [reactors.loop.stats],
    singletons: [],
    driving: reactors.driving,
    workflows: reactors.workflows,
    effects: reactors.effects,
  }));
  presence.begin();
  return presence;
}

/** Waits for the signal; meanwhile the counters go into the log once a minute. */
async function logStatsUntil({ loop }: RunningReactors, stop: Promise<void>, log: Log): Promise<void> {
  const stopped = new AbortController();
  void stop.then(() => stopped.abort());
  while (!stopped.signal.aborted) {
    await systemClock.sleep(statsEveryMs, stopped.signal);
    if (!stopped.signal.aborted) log("info", "reactors.stats", { tallies: loop.stats });
  }
}
