import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { type Log, logOf } from "../../base/log.ts";
import { errorFields } from "../../base/reason.ts";
import { type FlagValue, type LoadedConfig, loadConfig } from "../../config/load.ts";
import { maskUrl } from "../../config/mask.ts";
import type { Config } from "../../config/schema.ts";
import { type RunningServer, serve as serveStore } from "../../host/serve.ts";
import { TapeError } from "../../model/errors.ts";
import type { TokenLifetimes } from "../../server/handler-types.ts";
import type { ServerLimits } from "../../server/limits.ts";
import type { TlsFiles } from "../../server/listen.ts";
import type { Command, Invocation } from "../command.ts";
import { loadRunner } from "../reactors/module.ts";
import { folderOf, storeUrl } from "../reactors/place.ts";
import { version } from "../version.ts";

/** The server alone: no worker, no reactor. */
export const serve: Command = {
  name: "serve",
  summary: "the store over HTTP, for programs elsewhere; runs no workflow and no reactor by itself",
  options: {
    config: { value: "FILE", help: "the settings to read; default: tape.yaml in this folder" },
    listen: { value: "HOST:PORT", help: "tape.server.listen" },
    store: { value: "URL", help: "tape.store.url" },
    set: { value: "PATH=VALUE", many: true, help: "any other setting, as in tape.server.credentials=required" },
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
    ...(file === undefined ? {} : { file }),
  });
  const { tape, agent } = config.settings;
  const { server } = tape;
  const log = logOf(tape.log.level);
  for (const message of config.warnings) log("warn", "config.warning", { message });
  const url = storeUrl(config, cwd);
  const serving = await serveStore({
    ...{ store: url, log, version, tenant: tape.tenant, credentials: server.credentials },
    ...placeOf(server.listen),
    ...tlsOf(config, cwd),
    ...(server.bootstrap_token === undefined ? {} : { bootstrapToken: server.bootstrap_token }),
    ...(agent.runner_factory === undefined
      ? {}
      : { runner: await loadRunner(agent.runner_factory, folderOf(config, "agent.runner_factory", cwd)) }),
    limits: limitsOf(server),
    lifetimes: lifetimesOf(server.tokens),
    plain: server.plain,
    ...(server.origin === undefined ? {} : { origin: server.origin }),
    ...(server.trusted_proxies === undefined ? {} : { trustedProxies: server.trusted_proxies }),
    timeouts: { idleMs: server.idle_s * 1_000 },
  });
  const stop = stopSignal(log);
  const forget = followCertificate(() => tlsOf(config, cwd).tls, serving, log);
  const { screen } = invocation;
  screen.line(`listening on ${serving.url}`);
  screen.line(`store        ${maskUrl(url)}`);
  screen.line(
    server.credentials === "required"
      ? "credentials  required: send Authorization: Bearer <token>"
      : `credentials  none: whoever reaches this address is admin of ${tape.tenant}`,
  );
  const { credentials } = server;
  log("info", "server.started", { url: serving.url, store: maskUrl(url), credentials, tenant: tape.tenant });
  await stop;
  forget();
  const drained = await serving.stop(tape.drain_s * 1_000);
  log("info", "server.stopped", { drained });
  return 0;
}

const dayMs = 86_400_000;

export function lifetimesOf(days: {
  default_days?: number | undefined;
  max_days?: number | undefined;
}): TokenLifetimes {
  const { default_days: usual, max_days: most } = days;
  return { ...(usual && { defaultMs: usual * dayMs }), ...(most && { maxMs: most * dayMs }) };
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
    answersBytes: limits.answers_bytes,
    ratePerSecond: rate.per_second,
    rateBurst: rate.burst,
    failedSignIns: rate.failed_sign_ins,
  };
}

export function placeOf(listen: string): { readonly host: string; readonly port: number } {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(listen) ?? [];
  if (host === undefined || Number(port) > 65_535) {
    throw new TapeError("TAPE_BAD_CONFIG", "tape.server.listen: write HOST:PORT, as in 127.0.0.1:7878", { listen });
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
      const why = (error as { code?: string }).code ?? String(error);
      throw new TapeError("TAPE_BAD_CONFIG", `${path}: ${file} cannot be read (${why})`, { path }, error);
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

/** How often the files are looked at; SIGHUP has them looked at once more. */
const certificateMs = 60_000;

/** A certificate that was renewed is shown from the next connection on: nobody has to restart the server for it. */
export function followCertificate(
  read: () => TlsFiles | undefined,
  serving: Pick<RunningServer, "renewTls">,
  log: Log,
): () => void {
  const textOf = (tls: TlsFiles): string => [tls.cert, tls.key, tls.clientCa ?? ""].map(String).join();
  const first = read();
  if (first === undefined) return () => {};
  let shown = textOf(first);
  const look = (): void => {
    try {
      const now = read();
      if (now === undefined || textOf(now) === shown) return;
      serving.renewTls(now);
      shown = textOf(now);
      log("info", "server.certificate_renewed", {});
    } catch (error) {
      log("warn", "server.certificate_unusable", { ...errorFields(error) }); // half written, perhaps: the old one stays
    }
  };
  let cancel = (): void => {};
  const again = (): void => {
    cancel = systemClock.after(certificateMs, () => {
      look();
      again();
    });
  };
  again();
  process.on("SIGHUP", look);
  return () => {
    cancel();
    process.off("SIGHUP", look);
  };
}

function stopSignal(log: Log): Promise<void> {
  return new Promise((done) => {
    let stopping = false;
    const onSignal = (signal: string): void => {
      if (stopping) {
        log("error", "server.killed", { signal });
        process.exit(1); // somebody is impatient: what was acknowledged is in the store
      }
      stopping = true;
      log("info", "server.stopping", { signal });
      done();
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}
