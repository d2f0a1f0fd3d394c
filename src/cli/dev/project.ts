import { dirname, resolve } from "node:path";
import { aborted } from "../../base/abort.ts";
import { systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { jsonLog } from "../../base/log.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { maskUrl } from "../../config/mask.ts";
import { parseReference } from "../../config/reference.ts";
import { openStore } from "../../host/open-store.ts";
import { TapeError } from "../../model/errors.ts";
import { tlsOf } from "../commands/serve.ts";
import { fileOf } from "../reactors/module.ts";
import type { Screen } from "../screen.ts";
import { assertShared, folderOf, storeUrl } from "../store-settings.ts";
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
  readonly address: { readonly host: string; readonly port: number };
  readonly cwd: string;
  /** As given on the command line. */
  readonly file: string | undefined;
  readonly runnerFrom: string | undefined;
}

/** A reload should not wait half a minute for a hanging step, unless drain_s is set explicitly. */
const drainS = 5;
/** Time to exit after the drain. */
const graceMs = 2_000;

/** Runs the user's project: the server in this process, worker and reactors in a child that restarts on every change. */
export async function runProject(options: ProjectOptions): Promise<number> {
  const { screen, config, address, cwd } = options;
  const { agent, tape } = config.settings;
  const { server } = tape;
  const url = sharedUrl(config, cwd);
  const reference = agent.runner_factory ?? "";
  const folder = folderOf(config, "agent.runner_factory", cwd);
  // A file that does not exist yet is watched for: the runner starts once it is there.
  const runnerFile = fileOf(reference, folder) ?? resolve(folder, parseReference(reference)?.files[0] ?? "");
  const drain = config.origins.get("tape.drain_s")?.from === "default" ? drainS : tape.drain_s;
  const print = (line: string): void => screen.line(line);
  const log = jsonLog((text) => print(printLogLine(logLineOf(text)!)), systemClock.wall, "warn");
  const store = await openStore(url, { log });
  const runner = new RunnerProcess({
    args: argsOf(options, drain),
    // Not an argument: every user of the machine can read arguments, and the URL may contain a password.
    env: { TAPE_STORE_URL: url },
    clock: systemClock,
    graceMs: drain * 1_000 + graceMs,
    print,
  });
  using stop = new Stop(() => runner.kill());
  try {
    const { serving, taken } = await serveNear(store, address, {
      ...{ log, version, tenant: tape.tenant, credentials: server.credentials },
      ...tlsOf(config, cwd),
      ...defined({ bootstrapToken: server.bootstrap_token }),
    });
    const interactive = isInteractive();
    screen.line(screen.bold(`Tape dev ${version}`));
    screen.line(`  page    ${serving.url}${taken === undefined ? "" : `  (port ${taken} is in use)`}`);
    screen.line(`  store   ${maskUrl(url)}`);
    screen.line(`  runner  ${reference}  (restarts when a file in its folder changes)`);
    screen.line(`  keys    ${interactive ? "o open the page · q quit" : "none without a terminal; SIGTERM stops it"}`);
    screen.line();
    const release = interactive ? onKeys((key) => onKey(key, stop, () => openPage(serving.url, print))) : () => {};
    const unwatch = watchSources({
      folder: dirname(runnerFile),
      file: config.file === undefined ? undefined : resolve(cwd, config.file),
      clock: systemClock,
      changed: (name) => {
        print(`${name} changed: restarting the runner`);
        runner.reload();
      },
    });
    try {
      runner.start();
      await aborted(stop.signal);
      print("stopping: the runner drains and releases its leases");
    } finally {
      unwatch();
      release();
      await Promise.all([runner.stop(), serving.stop(drain * 1_000)]);
    }
  } finally {
    await store.close();
  }
  print("stopped");
  return 0;
}

function onKey(key: string, stop: Stop, open: () => void): void {
  if (key === "q") stop.request();
  if (key === "o") open();
}

/** The store's URL. The server and the runner are two processes, so both must be able to open it. */
function sharedUrl(config: LoadedConfig, cwd: string): string {
  const url = storeUrl(config, cwd);
  assertShared(url);
  const badUrl = (message: string): TapeError => new TapeError("TAPE_BAD_CONFIG", `tape.store.url: ${message}`);
  if (/^https?:/.test(url)) throw badUrl("dev serves the store itself; use sqlite:FILE or postgres://…");
  if (/[?&]processes=single\b/.test(url))
    throw badUrl("dev opens the store from two processes; remove processes=single");
  return url;
}

function argsOf({ file, runnerFrom }: ProjectOptions, drain: number): string[] {
  const option = (flag: string, text: string | undefined): string[] => (text === undefined ? [] : [flag, text]);
  return [...option("--config", file), ...option("--runner-from", runnerFrom), ...["--set", `tape.drain_s=${drain}`]];
}
