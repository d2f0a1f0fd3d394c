import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { defined } from "../base/defined.ts";
import { type Log, silentLog } from "../base/log.ts";
import { suggest } from "../base/suggest.ts";
import { loadConfig } from "../config/load.ts";
import { maskUrl } from "../config/mask.ts";
import { openStore } from "../host/open-store.ts";
import { Tape } from "../host/tape.ts";
import { TapeError } from "../model/errors.ts";
import { createRunner, type Runner } from "../sdk/workflow.ts";
import type { Store } from "../store/contract/store.ts";
import { alarmsInUse } from "./alarms.ts";
import { type Invocation, type Option, UsageError } from "./command.ts";
import { assertShared, configuredCodec, configuredRunner, remoteOf, storeUrl, tenantOf } from "./store-settings.ts";

/** Options of every command that opens a store. */
export const storeOptions = {
  store: {
    value: "URL",
    help: "sqlite:FILE, postgres://… or a server's http(s)://… (default: the store in tape.yaml)",
  },
  config: { value: "FILE", help: "configuration file (default: tape.yaml)" },
  tenant: { value: "NAME", help: "tenant (default: the tenant in tape.yaml; with a server, the token's tenant)" },
} as const satisfies Record<string, Option>;

export const outputOption = {
  output: { value: "table|json", short: "o", help: "output format (default: table)" },
} as const satisfies Record<string, Option>;

/** The operator and the reason, for every operator action. */
export const operatorOptions = {
  reason: { value: "TEXT", help: "reason, recorded in the audit log" },
  by: { value: "NAME", help: "your name (default: OS user)" },
} as const satisfies Record<string, Option>;

export interface OpenedStore {
  readonly app: Tape;
  readonly store: Store;
  readonly tenant: string;
  /** The store's address without a password. */
  readonly url: string;
  /** The agent's definitions; empty unless the command needs them and the configuration names a runner factory. */
  readonly runner: Runner;
}

export interface OpenOptions {
  /** Creates the store if it does not exist. */
  readonly create?: boolean;
  /** Receives the store's log events; silent by default. */
  readonly log?: Log;
  /** Also opens a copied SQLite file, because the command is about to raise its epoch. */
  readonly restored?: boolean;
  /** Loads the runner factory of tape.yaml, because the command needs the agent's definitions. */
  readonly runner?: boolean;
}

/** Opens the store that the command line, the environment or tape.yaml names, without driving runs, then closes it. */
export async function withApp<T>(
  invocation: Invocation,
  work: (opened: OpenedStore) => Promise<T>,
  options: OpenOptions = {},
): Promise<T> {
  const { config, url } = settingsOf(invocation);
  if (options.create !== true) assertExists(url);
  const loaded = options.runner === true ? await configuredRunner(config, process.cwd()) : undefined;
  const runner: Runner = loaded ?? createRunner({ workflows: [] });
  const store = await openStore(url, {
    log: options.log ?? silentLog,
    ...remoteOf(config, url),
    ...(options.restored === true ? { restored: true } : {}),
  });
  const codec = await configuredCodec(config, process.cwd());
  const { serverless, close: closeAlarms } = await alarmsInUse(config.settings);
  try {
    const tenant = tenantOf(store, config, { flag: invocation.text("tenant") });
    const more = defined({ serverless, codec });
    await using app = await Tape.open({ store, runner, tenant, work: false, log: silentLog, ...more });
    return await work({ app, store: app.store, tenant, url: maskUrl(url), runner });
  } finally {
    await store.close();
    await closeAlarms();
  }
}

export function settingsOf(invocation: Invocation): { config: ReturnType<typeof loadConfig>; url: string } {
  const store = invocation.text("store");
  const file = invocation.text("config");
  const flags = store === undefined ? [] : [{ path: "tape.store.url", text: store, flag: "--store" }];
  const cwd = process.cwd();
  const config = loadConfig({ cwd, env: process.env, flags, ...defined({ file }) });
  const url = storeUrl(config, cwd);
  assertShared(url);
  return { config, url };
}

/** A command that only reads must not create an empty file, which would then look like a store without runs. */
export function assertExists(url: string): void {
  if (!url.startsWith("sqlite:")) return;
  const [file = ""] = url.slice("sqlite:".length).split("?", 1);
  if (existsSync(file)) return;
  throw new TapeError(
    "TAPE_STORE_UNREACHABLE",
    `file ${file} not found; start a run first, or name the store with --store`,
    {
      file,
    },
  );
}

/** Every operator action needs a reason; the name defaults to the OS user. */
export function operatorOf(invocation: Invocation): { readonly by: string; readonly reason: string } {
  const reason = invocation.text("reason");
  if (reason === undefined || reason.trim() === "") {
    throw new UsageError("--reason is required: the audit log records why");
  }
  return { by: invocation.text("by") ?? userInfo().username, reason };
}

/** Parses a comma-separated list of known values; an unknown value is an error that lists them all. */
export function choicesOf<T extends string>(
  option: string,
  text: string | undefined,
  known: readonly T[],
): T[] | undefined {
  return text?.split(",").map((value) => {
    const found = known.find((choice) => choice === value);
    if (found !== undefined) return found;
    const near = suggest(value.toUpperCase(), known);
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    throw new UsageError(`${option} must be one of ${known.join(", ")}, not ${value}${hint}`);
  });
}

/** Parses JSON from the command line; `name` is the option to name in the error. */
export function jsonOf(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${name} is not valid JSON: ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`);
  }
}

export function wholeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${name} must be a whole number, not ${text}`);
  return Number(text);
}
