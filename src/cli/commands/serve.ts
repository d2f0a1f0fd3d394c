import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { type Log, logOf } from "../../base/log.ts";
import { errorFields } from "../../base/reason.ts";
import { type FlagValue, type LoadedConfig, loadConfig } from "../../config/load.ts";
import { maskUrl } from "../../config/mask.ts";
import type { Config } from "../../config/schema.ts";
import { type RunningServer, serve as serveStore } from "../../host/serve.ts";
import { Tape } from "../../host/tape.ts";
import { TapeError } from "../../model/errors.ts";
import { createRunner, type Runner } from "../../sdk/workflow.ts";
import type { TokenLifetimes } from "../../server/handler-types.ts";
import type { ServerLimits } from "../../server/limits.ts";
import type { TlsFiles } from "../../server/listen.ts";
import type { Store } from "../../store/contract/store.ts";
import { alarmsInUse } from "../alarms.ts";
import type { Command, Invocation } from "../command.ts";
import { configuredRunner, folderOf, storeUrl } from "../store-settings.ts";
import { version } from "../version.ts";

/** Runs the server only, without worker or reactors. */
export const serve: Command = {
  name: "serve",
  summary: "serves the store over HTTP (runs no workflows or reactors)",
  options: {
    config: { value: "FILE", help: "configuration file (default: tape.yaml)" },
    listen: { value: "HOST:PORT", help: "overrides tape.server.listen" },
    store: { value: "URL", help: "overrides tape.store.url" },
    set: { value: "PATH=VALUE", many: true, help: "overrides any setting, such as tape.server.credentials=required" },
  },
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const cwd = process.cwd();
  const file = invocation.text("config");
  const config = loadConfig({
    cwd,
    env: process.env,
    flags: flagsOf(invocation),
    ...defined({ file }),
  });
  const { tape } = config.settings;
  const log = logOf(tape.log.level);
  for (const message of config.warnings) log("warn", "config.warning", { message });
  const url = storeUrl(config, cwd);
  const runner = await configuredRunner(config, cwd);
  const { serverless, close: closeAlarms } = await alarmsInUse(config.settings);
  // Callers may start runs with a delay and define schedules, so the store of the server sets alarms, too.
  const open = { store: url, runner: runner ?? createRunner({ workflows: [] }), tenant: tape.tenant, log, work: false };
  const armed = serverless && (await Tape.open({ ...open, serverless }));
  try {
    return await serveUntilStopped(invocation, {
      config,
      log,
      url,
      store: armed?.store ?? url,
      ...defined({ runner }),
    });
  } finally {
    await armed?.close();
    await closeAlarms();
  }
}

interface ServedStore {
  readonly config: LoadedConfig;
  readonly log: Log;
  readonly url: string;
  readonly store: string | Store;
  readonly runner?: Runner;
}

async function serveUntilStopped(
  { screen }: Invocation,
  { config, log, url, store, runner }: ServedStore,
): Promise<number> {
  const cwd = process.cwd();
  const { tape } = config.settings;
  const { server } = tape;
  const serving = await serveStore({
    ...{ store, log, version, tenant: tape.tenant, credentials: server.credentials },
    ...listenAddress(server.listen),
    ...tlsOf(config, cwd),
    ...defined({ bootstrapToken: server.bootstrap_token }),
    ...defined({ runner }),
    limits: limitsOf(server),
    lifetimes: lifetimesOf(server.tokens),
    plain: server.plain,
    ...defined({ origin: server.origin, trustedProxies: server.trusted_proxies, streamOrigins: server.stream_origins }),
    ...defined({ codecEndpoint: server.codec_endpoint }),
    timeouts: { idleMs: server.idle_s * 1_000 },
  });
  const stop = stopSignal(log);
  const unwatch = watchCertificate(() => tlsOf(config, cwd).tls, serving, log);
  screen.line(`listening on ${serving.url}`);
  screen.line(`store        ${maskUrl(url)}`);
  screen.line(
    server.credentials === "required"
      ? "credentials  required: send Authorization: Bearer <token>"
      : `credentials  none: every client that reaches this address is an admin of tenant ${tape.tenant}`,
  );
  const { credentials } = server;
  log("info", "server.started", { url: serving.url, store: maskUrl(url), credentials, tenant: tape.tenant });
  await stop;
  unwatch();
  const drained = await serving.stop(tape.drain_s * 1_000);
  log("info", "server.stopped", { drained });
  return 0;
}

const dayMs = 86_400_000;

export function lifetimesOf(days: {
  default_days?: number | undefined;
  max_days?: number | undefined;
}): TokenLifetimes {
  const { default_days: defaultDays, max_days: maxDays } = days;
  return { ...(defaultDays && { defaultMs: defaultDays * dayMs }), ...(maxDays && { maxMs: maxDays * dayMs }) };
}

function flagsOf(invocation: Invocation): FlagValue[] {
  const named = (path: string, option: string): FlagValue[] => {
    const text = invocation.text(option);
    return text === undefined ? [] : [{ path, text, flag: `--${option}` }];
  };
  const set = invocation.all("set").map((text) => {
    const [path = "", value = ""] = text.split(/=(.*)/s, 2);
    return { path, text: value, flag: `--set ${path}` };
  });
  return [...set, ...named("tape.server.listen", "listen"), ...named("tape.store.url", "store")];
}

export function limitsOf({ limits, rate }: Config["tape"]["server"]): ServerLimits {
  return {
    bodyBytes: limits.body_bytes,
    bodiesBytes: limits.bodies_bytes,
    values: limits.values,
    depth: limits.depth,
    requests: limits.requests,
    renewals: limits.renewals,
    waiters: limits.waiters,
    streams: limits.streams,
    connections: limits.connections,
    connectionsPerAddress: limits.connections_per_address,
    unreadBytes: limits.unread_bytes,
    ratePerSecond: rate.per_second,
    rateBurst: rate.burst,
    failedSignIns: rate.failed_sign_ins,
  };
}

export function listenAddress(listen: string): { readonly host: string; readonly port: number } {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(listen) ?? [];
  if (host === undefined || Number(port) > 65_535) {
    throw new TapeError("TAPE_BAD_CONFIG", "tape.server.listen must be HOST:PORT, such as 127.0.0.1:7878", { listen });
  }
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}

export function tlsOf(config: LoadedConfig, cwd: string): { tls?: TlsFiles } {
  const { cert, key, client_ca: clientCa } = config.settings.tape.server.tls;
  if (cert === undefined || key === undefined) return {};
  const read = (path: string, file: string): Buffer => {
    try {
      return readFileSync(resolve(folderOf(config, path, cwd), file));
    } catch (error) {
      const reason = (error as { code?: string }).code ?? String(error);
      throw new TapeError("TAPE_BAD_CONFIG", `${path}: cannot read ${file} (${reason})`, { path }, error);
    }
  };
  return {
    tls: {
      cert: read("tape.server.tls.cert", cert),
      key: read("tape.server.tls.key", key),
      ...(clientCa === undefined ? {} : { clientCa: read("tape.server.tls.client_ca", clientCa) }),
    },
  };
}

/** How often the files are read again; SIGHUP reads them at once. */
const certificateMs = 60_000;

/** Uses a renewed certificate from the next connection on, so that renewing it needs no restart. */
export function watchCertificate(
  read: () => TlsFiles | undefined,
  serving: Pick<RunningServer, "renewTls">,
  log: Log,
): () => void {
  const textOf = (tls: TlsFiles): string => [tls.cert, tls.key, tls.clientCa ?? ""].map(String).join();
  const first = read();
  if (first === undefined) return () => {};
  let current = textOf(first);
  const reload = (): void => {
    try {
      const files = read();
      if (files === undefined || textOf(files) === current) return;
      serving.renewTls(files);
      current = textOf(files);
      log("info", "server.certificate_renewed", {});
    } catch (error) {
      log("warn", "server.certificate_unusable", { ...errorFields(error) }); // perhaps half written: keep the old one
    }
  };
  let cancel = (): void => {};
  const schedule = (): void => {
    cancel = systemClock.after(certificateMs, () => {
      reload();
      schedule();
    });
  };
  schedule();
  process.on("SIGHUP", reload);
  return () => {
    cancel();
    process.off("SIGHUP", reload);
  };
}

function stopSignal(log: Log): Promise<void> {
  return new Promise((done) => {
    let stopping = false;
    const onSignal = (signal: string): void => {
      if (stopping) {
        log("error", "server.killed", { signal });
        process.exit(1); // the second signal forces an exit: acknowledged writes are in the store
      }
      stopping = true;
      log("info", "server.stopping", { signal });
      done();
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}
