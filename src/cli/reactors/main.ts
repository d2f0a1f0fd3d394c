import { systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { type Log, logOf } from "../../base/log.ts";
import { systemRandom } from "../../base/random.ts";
import { reasonOf } from "../../base/reason.ts";
import { suggest } from "../../base/suggest.ts";
import { type LoadedConfig, loadConfig } from "../../config/load.ts";
import { maskUrl } from "../../config/mask.ts";
import type { ReactorSettings } from "../../config/schema.ts";
import { openStore } from "../../host/open-store.ts";
import type { ReactorSpec, RunningReactors } from "../../host/reactors.ts";
import { retentionSpecs } from "../../host/retention.ts";
import { type AssembledReactors, assembleReactors } from "../../host/run-reactors.ts";
import { quietFor, sealedFor } from "../../host/sealing.ts";
import type { Tape } from "../../host/tape.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { ReactorHandler } from "../../reactor/custom.ts";
import { createRunner, type Runner } from "../../sdk/workflow.ts";
import { alarmsInUse } from "../alarms.ts";
import { complain } from "../screen.ts";
import {
  assertShared,
  configuredCodec,
  configuredRunner,
  folderOf,
  remoteOf,
  storeUrl,
  tenantOf,
} from "../store-settings.ts";
import { version } from "../version.ts";
import { runAnnouncer } from "./announcer.ts";
import { serveMetrics } from "./metrics-port.ts";
import { loadFunction } from "./module.ts";
import { parseOptions, type ReactorsOptions, usage } from "./options.ts";
import { configuredRetention } from "./retention.ts";
import { chosenSinks, selectionOf } from "./sinks.ts";
import { stopSignal } from "./stop-signal.ts";

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
    return await (options.announce ? runAnnouncer(options) : run(options));
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
  const codec = await configuredCodec(config, cwd);
  const log = quietFor({ codec }, logOf(tape.log.level));
  for (const message of config.warnings) log("warn", "config.warning", { message });
  const selection = selectionOf(only);
  const retention = await configuredRetention(config, cwd);
  const runsRetention = retention !== undefined && (selection.reactors?.includes("retention") ?? true);
  const own = selection.reactors?.filter((name) => name !== "retention" || retention === undefined);
  const chosen = await chosenReactors(config, own, cwd);
  const sinks = await chosenSinks(config, selection.sinks, cwd, log);
  if (chosen.length + sinks.length === 0 && !runsRetention) {
    throw new TapeError("TAPE_BAD_CONFIG", "tape.reactors: none has mode: loop and is enabled, and no sink is enabled");
  }
  const runner = await runnerOf(config, chosen, cwd);
  const url = storeUrl(config, cwd);
  assertShared(url);
  const stop = stopSignal(log);
  const { serverless, close: closeAlarms } = await alarmsInUse(config.settings);
  const store = sealedFor(await openStore(url, { log, ...remoteOf(config, url) }), { codec });
  const seams = { log, clock: systemClock, random: systemRandom };
  let reactors: AssembledReactors | undefined;
  try {
    const tenant = tenantOf(store, config);
    reactors = await assembleReactors({
      ...{ store, tenant, runner, ...seams },
      specs: (app) => [
        ...specsOf(chosen, app),
        ...retentionSpecs(runsRetention ? retention : undefined, { ...seams, store, tenant }, app.metrics),
      ],
      driver: {
        ...{ patienceMs: tape.replay_patience_s * 1_000, slowMs: tape.slow_after_s * 1_000 },
        ...defined({ publicUrl: tape.server.public_url?.replace(/\/+$/, "") }),
      },
      drainMs: tape.drain_s * 1_000,
      ...defined({ pendingAfterS: tape.reactors.reconciler.pending_after_s, serverless }),
    });
    await serveMetrics(reactors.app, tape.metrics.listen, log);
    for (const sink of sinks) reactors.app.fanouts.start(sink);
    const retaining = runsRetention ? ["retention"] : [];
    const names = [...chosen.map(({ name }) => name), ...retaining, ...sinks.map(({ name }) => `sink-${name}`)];
    const { label } = reactors.identity;
    const sources = { store: maskUrl(url), config: config.file, project: project.name };
    log("info", "reactors.started", { reactors: names, replica: label, tenant, ...sources });
    await logStatsUntil(reactors.running, stop, log);
  } finally {
    await reactors?.stop();
    if (reactors !== undefined) log("info", "reactors.stopped", { stats: reactors.running.loop.stats });
    await store.close();
    await closeAlarms();
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
  const runsHere = ({ enabled, mode }: ReactorSettings): boolean => enabled && mode === "loop";
  const chosen = Object.entries(reactors).filter(([name, settings]) => only?.includes(name) ?? runsHere(settings));
  return Promise.all(
    chosen.map(async ([name, settings]) => {
      if (settings.handler === undefined) return { name, settings };
      const folder = folderOf(config, `tape.reactors.${name}.handler`, cwd);
      const handler = await loadFunction(settings.handler, folder, `tape.reactors.${name}.handler: handler`);
      return { name, settings, handler: handler as unknown as ReactorHandler<Tape> };
    }),
  );
}

const specsOf = (chosen: readonly ChosenReactor[], app: Tape): ReactorSpec[] =>
  chosen.map(({ handler, ...spec }) =>
    handler === undefined ? spec : { ...spec, custom: (context) => handler(app, context) },
  );

/** Timers and custom handlers need no runner. */
async function runnerOf(config: LoadedConfig, chosen: readonly ChosenReactor[], cwd: string): Promise<Runner> {
  const configured = await configuredRunner(config, cwd);
  if (configured !== undefined) return configured;
  const needing = chosen.find(({ name, handler }) => handler === undefined && name !== "timers");
  if (needing === undefined) return createRunner({ workflows: [] });
  const message = `${needing.name} needs your runner: set --runner-from FUNCTION or agent.runner_factory`;
  throw new TapeError("TAPE_BAD_CONFIG", message, { reactor: needing.name });
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
