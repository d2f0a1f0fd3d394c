import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { type Log, silentLog } from "../base/log.ts";
import { suggest } from "../base/suggest.ts";
import { loadConfig } from "../config/load.ts";
import { maskUrl } from "../config/mask.ts";
import { isMemoryUrl, openStore } from "../host/open-store.ts";
import { Tape } from "../host/tape.ts";
import { TapeError } from "../model/errors.ts";
import { createRunner, type Runner } from "../sdk/workflow.ts";
import type { Store } from "../store/contract/store.ts";
import { type Invocation, type Option, UsageError } from "./command.ts";
import { loadRunner } from "./reactors/module.ts";
import { folderOf, remoteOf, storeUrl, tenantOf } from "./reactors/place.ts";

/** Options of every command that looks into a store. */
export const storeOptions = {
  store: { value: "URL", help: "sqlite:FILE, postgres://… or a server's http(s)://…; default: tape.yaml's store" },
  config: { value: "FILE", help: "the settings to read; default: tape.yaml" },
  tenant: { value: "NAME", help: "whose runs; default: tape.yaml's tenant, through a server the token's" },
} as const satisfies Record<string, Option>;

export const outputOption = {
  output: { value: "table|json", short: "o", help: "a table for people (default), json for programs" },
} as const satisfies Record<string, Option>;

/** Who acts and why, for what a person does by hand. */
export const operatorOptions = {
  reason: { value: "TEXT", help: "why; journal, ledger and audit keep it" },
  by: { value: "NAME", help: "who; default: the user of this machine" },
} as const satisfies Record<string, Option>;

export interface OpenedStore {
  readonly app: Tape;
  readonly store: Store;
  readonly tenant: string;
  /** The store's address without a password. */
  readonly url: string;
  /** The agent's definitions, if they are needed and the settings say where they are. */
  readonly runner: Runner;
}

export interface OpenOptions {
  /** A store that does not exist yet is made. */
  readonly create?: boolean;
  /** What happens to the store meanwhile is said, also what is no fault. */
  readonly log?: Log;
  /** A copy of a SQLite file is opened, too: it is about to get an epoch of its own. */
  readonly restored?: boolean;
  /** The definitions of the agent are needed: the runner factory of tape.yaml is loaded. */
  readonly runner?: boolean;
}

/** Opens what the command line, the environment or tape.yaml name, without driving anything, and closes it after. */
export async function withApp<T>(
  invocation: Invocation,
  work: (opened: OpenedStore) => Promise<T>,
  options: OpenOptions = {},
): Promise<T> {
  const { config, url } = settingsOf(invocation);
  if (options.create !== true) assertExists(url);
  const { agent } = config.settings;
  const factory = options.runner === true ? agent.runner_factory : undefined;
  const runner: Runner =
    factory === undefined
      ? createRunner({ workflows: [] })
      : await loadRunner(factory, folderOf(config, "agent.runner_factory", process.cwd()));
  const store = await openStore(url, {
    log: options.log ?? silentLog,
    ...remoteOf(config, url),
    ...(options.restored === true ? { restored: true } : {}),
  });
  try {
    const tenant = tenantOf(store, config, { flag: invocation.text("tenant") });
    await using app = await Tape.open({ store, runner, tenant, work: false, log: silentLog });
    return await work({ app, store, tenant, url: maskUrl(url), runner });
  } finally {
    await store.close();
  }
}

export function settingsOf(invocation: Invocation): { config: ReturnType<typeof loadConfig>; url: string } {
  const given = invocation.text("store");
  const file = invocation.text("config");
  const flags = given === undefined ? [] : [{ path: "tape.store.url", text: given, flag: "--store" }];
  const cwd = process.cwd();
  const config = loadConfig({ cwd, env: process.env, flags, ...(file === undefined ? {} : { file }) });
  const url = storeUrl(config, cwd);
  if (isMemoryUrl(url)) {
    throw new TapeError("TAPE_BAD_CONFIG", "tape.store.url: what is in memory, no other process can see", { url });
  }
  return { config, url };
}

/** Looking must not make an empty file that then looks like a store without runs. */
function assertExists(url: string): void {
  if (!url.startsWith("sqlite:")) return;
  const [file = ""] = url.slice("sqlite:".length).split("?", 1);
  if (existsSync(file)) return;
  throw new TapeError("TAPE_STORE_UNREACHABLE", `there is no file ${file}; start a run first, or name the store`, {
    file,
  });
}

/** A deed needs a reason; the name is the user's of this machine unless it is given. */
export function operatorOf(invocation: Invocation): { readonly by: string; readonly reason: string } {
  const reason = invocation.text("reason");
  if (reason === undefined || reason.trim() === "") {
    throw new UsageError("this needs --reason: journal, ledger and audit keep why it was done");
  }
  return { by: invocation.text("by") ?? userInfo().username, reason };
}

/** Words of a list that the command knows, or a refusal that names them all. */
export function wordsOf<T extends string>(
  option: string,
  text: string | undefined,
  known: readonly T[],
): T[] | undefined {
  return text?.split(",").map((word) => {
    const found = known.find((one) => one === word);
    if (found !== undefined) return found;
    const near = suggest(word.toUpperCase(), known);
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    throw new UsageError(`${option} is one of ${known.join(", ")}, not ${word}${meant}`);
  });
}

/** JSON as a word of the command line. */
export function jsonOf(what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${what} is no JSON: ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`);
  }
}

export function wholeOf(what: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${what} is a whole number, not ${text}`);
  return Number(text);
}
