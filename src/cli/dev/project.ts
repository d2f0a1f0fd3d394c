import { dirname, resolve } from "node:path";
import { aborted } from "../../base/abort.ts";
import { systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { jsonLog } from "../../base/log.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { maskUrl } from "../../config/mask.ts";
import { isMemoryUrl, openStore } from "../../host/open-store.ts";
import { TapeError } from "../../model/errors.ts";
import { tlsOf } from "../commands/serve.ts";
import { folderOf, storeUrl } from "../reactors/place.ts";
import type { Screen } from "../screen.ts";
import { version } from "../version.ts";
import { serveNear } from "./address.ts";
import { logLineOf, printLogLine } from "./log-line.ts";
import { openPage } from "./page.ts";
import { RunnerProcess } from "./runner-process.ts";
import { Stop } from "./stop.ts";
import { isInteractive, onKeys } from "./terminal.ts";
import { watchSources } from "./watch.ts";

export interface ProjectOptions {
  readonly screen: Screen;
  readonly config: LoadedConfig;
  readonly place: { readonly host: string; readonly port: number };
  readonly cwd: string;
  /** As they were given on the command line. */
  readonly file: string | undefined;
  readonly runnerFrom: string | undefined;
}

/** A reload should not wait half a minute for a step that hangs; whoever sets drain_s means it. */
const drainS = 5;
/** What a process needs beside its drain. */
const graceMs = 2_000;

/** The user's own runner: the server here, worker and reactors in a child that is started again on every change. */
export async function runProject(options: ProjectOptions): Promise<number> {
  const { screen, config, place, cwd } = options;
  const { agent, tape } = config.settings;
  const { server } = tape;
  const url = sharedUrl(config, cwd);
  const reference = agent.runner_factory ?? "";
  const runnerFile = resolve(
    folderOf(config, "agent.runner_factory", cwd),
    reference.slice(0, reference.lastIndexOf("#")),
  );
  const drain = config.origins.get("tape.drain_s")?.from === "default" ? drainS : tape.drain_s;
  const tell = (line: string): void => screen.line(line);
  const log = jsonLog((text) => tell(printLogLine(logLineOf(text)!)), systemClock.wall, "warn");
  const store = await openStore(url, { log });
  const runner = new RunnerProcess({
    args: argsOf(options, drain),
    // Not as an argument: every user of the machine can read those, and the URL may hold a password.
    env: { TAPE_STORE_URL: url },
    clock: systemClock,
    graceMs: drain * 1_000 + graceMs,
    tell,
  });
  using stop = new Stop(() => runner.kill());
  try {
    const { serving, taken } = await serveNear(store, place, {
      ...{ log, version, tenant: tape.tenant, credentials: server.credentials },
      ...tlsOf(config, cwd),
      ...defined({ bootstrapToken: server.bootstrap_token }),
    });
    const lively = isInteractive();
    screen.line(screen.bold(`Tape dev ${version}`));
    screen.line(`  page    ${serving.url}${taken === undefined ? "" : `  (${taken} is taken)`}`);
    screen.line(`  store   ${maskUrl(url)}`);
    screen.line(`  runner  ${reference}  (starts again when a file beside it changes)`);
    screen.line(`  keys    ${lively ? "o open the page · q quit" : "none: there is no terminal; SIGTERM stops it"}`);
    screen.line();
    const release = lively ? onKeys((key) => onKey(key, stop, () => openPage(serving.url, tell))) : () => {};
    const unwatch = watchSources({
      folder: dirname(runnerFile),
      file: config.file === undefined ? undefined : resolve(cwd, config.file),
      clock: systemClock,
      changed: (name) => {
        tell(`${name} has changed: the runner starts again`);
        runner.reload();
      },
    });
    try {
      runner.start();
      await aborted(stop.signal);
      tell("stopping: the runner drains and gives back what it holds");
    } finally {
      unwatch();
      release();
      await Promise.all([runner.stop(), serving.stop(drain * 1_000)]);
    }
  } finally {
    await store.close();
  }
  tell("stopped");
  return 0;
}

function onKey(key: string, stop: Stop, open: () => void): void {
  if (key === "q") stop.ask();
  if (key === "o") open();
}

/** The server and the runner are two processes: both must get at the store. */
function sharedUrl(config: LoadedConfig, cwd: string): string {
  const url = storeUrl(config, cwd);
  const refuse = (why: string): TapeError => new TapeError("TAPE_BAD_CONFIG", `tape.store.url: ${why}`);
  if (isMemoryUrl(url)) throw refuse("what is in memory, no other process can see");
  if (/^https?:/.test(url)) throw refuse("dev serves a store itself; name an SQLite file or a PostgreSQL");
  if (/[?&]processes=single\b/.test(url))
    throw refuse("dev needs the store for two processes, and it is for one alone");
  return url;
}

function argsOf({ file, runnerFrom }: ProjectOptions, drain: number): string[] {
  const given = (flag: string, text: string | undefined): string[] => (text === undefined ? [] : [flag, text]);
  return [...given("--config", file), ...given("--runner-from", runnerFrom), ...["--set", `tape.drain_s=${drain}`]];
}
