import { defined } from "../../base/defined.ts";
import { logOf } from "../../base/log.ts";
import { loadConfig } from "../../config/load.ts";
import { maskUrl } from "../../config/mask.ts";
import type { Config } from "../../config/schema.ts";
import { openStore } from "../../host/open-store.ts";
import { Tape } from "../../host/tape.ts";
import { TapeError } from "../../model/errors.ts";
import { announce } from "../../push/announce.ts";
import { configuredWaker } from "../../push/configured.ts";
import type { Waker } from "../../push/waker.ts";
import { createRunner } from "../../sdk/workflow.ts";
import { assertShared, remoteOf, storeUrl, tenantOf } from "../store-settings.ts";
import { serveMetrics } from "./metrics-port.ts";
import type { ReactorsOptions } from "./options.ts";
import { stopSignal } from "./stop-signal.ts";

/** `tape-reactors --announce`: wakes the handlers of reactors with mode: push, until a signal stops it. */
export async function runAnnouncer({ config: file, flags }: ReactorsOptions): Promise<number> {
  const cwd = process.cwd();
  const config = loadConfig({ cwd, env: process.env, flags, ...defined({ file }) });
  const { tape, project } = config.settings;
  const log = logOf(tape.log.level);
  for (const message of config.warnings) log("warn", "config.warning", { message });
  const reactors = pushReactors(config.settings);
  const url = storeUrl(config, cwd);
  assertShared(url);
  const stop = stopSignal(log);
  const store = await openStore(url, { log, ...remoteOf(config, url) });
  let app: Tape | undefined;
  let waker: Waker | undefined;
  try {
    const tenant = tenantOf(store, config);
    waker = await configuredWaker(tape.push.waker, tenant, log);
    app = await Tape.open({ store, runner: createRunner({ workflows: [] }), tenant, log, work: false });
    await announce(app, { reactors, waker, batch: tape.push.waker.batch, log });
    await serveMetrics(app, tape.metrics.listen, log);
    const sources = { store: maskUrl(url), config: config.file, project: project.name };
    log("info", "announcer.standing_by", { reactors, waker: waker.label, tenant, ...sources });
    await stop;
  } finally {
    await app?.close();
    await waker?.close?.();
    await store.close();
  }
  return 0;
}

function pushReactors({ tape }: Config): string[] {
  const found = Object.entries(tape.reactors).flatMap(([name, { enabled, mode }]) =>
    enabled && mode === "push" ? [name] : [],
  );
  if (found.length > 0) return found;
  throw new TapeError("TAPE_BAD_CONFIG", "--announce: no reactor has mode: push in tape.reactors");
}
