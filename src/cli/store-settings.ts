import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { defined } from "../base/defined.ts";
import { isRemote } from "../client/remote.ts";
import { environmentToken } from "../client/token.ts";
import type { LoadedConfig } from "../config/load.ts";
import { isMemoryUrl } from "../host/open-store.ts";
import { shardListText } from "../host/shard-list.ts";
import { TapeError } from "../model/errors.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { PayloadCodec } from "../seal/payload-codec.ts";
import type { Store } from "../store/contract/store.ts";
import { loadFunction, loadRunner } from "./reactors/module.ts";

/** A path from the configuration file is relative to that file's folder; any other path, to the working directory. */
export function folderOf(config: LoadedConfig, path: string, cwd: string): string {
  const from = config.origins.get(path)?.from;
  return from === "environment" || from === "flag" ? cwd : config.folder;
}

/** The runner that the configuration names; the messages name the key or flag that names it. undefined: none. */
export async function configuredRunner(config: LoadedConfig, cwd: string): Promise<Runner | undefined> {
  const path = "agent.runner_factory";
  const reference = config.settings.agent.runner_factory;
  if (reference === undefined) return undefined;
  const origin = config.origins.get(path);
  const key = origin?.from === "flag" ? origin.flag : origin?.from === "environment" ? origin.variable : path;
  return loadRunner(reference, folderOf(config, path, cwd), key);
}

/** The payload codec that the configuration names; undefined: none, and payloads that are encrypted stay so. */
export async function configuredCodec(config: LoadedConfig, cwd: string): Promise<PayloadCodec | undefined> {
  const path = "agent.codec_factory";
  const reference = config.settings.agent.codec_factory;
  if (reference === undefined) return undefined;
  const build = await loadFunction(reference, folderOf(config, path, cwd), `${path}: codec factory`);
  const codec = (await build()) as Partial<PayloadCodec> | undefined;
  const { encode, decode, hash } = codec ?? {};
  if ([encode, decode, hash].every((method) => typeof method === "function")) return codec as PayloadCodec;
  const message = `${path}: codec factory ${reference}: it did not return a codec; return the result of aesGcm`;
  throw new TapeError("TAPE_BAD_MODULE", message, { reference });
}

/** How to reach a server. The environment's token is not sent to a server that only a file in this folder names. */
export function remoteOf(
  config: LoadedConfig,
  url: string,
): { readonly remote?: { readonly token: string | undefined } } {
  if (!/^https?:/i.test(url)) return {};
  const from = config.origins.get("tape.store.url")?.from;
  const fromFile = from === "environment" || from === "flag" ? undefined : (config.file ?? "tape.yaml");
  return { remote: { token: environmentToken(url, process.env, defined({ fromFile })) } };
}

/**
 * The tenant to work for. With a server it is the token's tenant; under any other name every list would silently be
 * empty. A typed command follows the token, and --tenant (`flag`) must agree with it; so must a program's configuration.
 */
export function tenantOf(store: Store, config: LoadedConfig, typed?: { readonly flag: string | undefined }): string {
  const { tenant } = config.settings.tape;
  if (!isRemote(store)) return typed?.flag ?? tenant;
  const set = config.origins.get("tape.tenant")?.from === "default" ? undefined : tenant;
  const requested = typed === undefined ? set : typed.flag;
  const own = store.remote.tenant;
  if (requested === undefined || requested === own) return own;
  const where = typed === undefined ? "tape.tenant" : "--tenant";
  const message = `${where}: the token belongs to tenant ${own}, not ${requested}; omit it, or use a token of ${requested}`;
  throw new TapeError("TAPE_BAD_CONFIG", message, { tenant: own });
}

/** An in-memory store belongs to the process that opened it, so a second process would see an empty one. */
export function assertShared(url: string): void {
  if (!isMemoryUrl(url)) return;
  const message = "tape.store.url: other processes cannot see an in-memory store; use sqlite:FILE or postgres://…";
  throw new TapeError("TAPE_BAD_CONFIG", message, { url });
}

/** The store's URL with an absolute path and the configured `processes`; creates the file's folder. */
export function storeUrl(config: LoadedConfig, cwd: string): string {
  const { url, processes, shards } = config.settings.tape.store;
  const from = config.origins.get("tape.store.url")?.from;
  // A flag or variable names another store than the file.
  if (shards !== undefined && from !== "flag" && from !== "environment") return shardListText(shards);
  const [path = "", query] = url.slice("sqlite:".length).split("?", 2);
  if (!url.startsWith("sqlite:") || path === ":memory:") return url;
  const file = resolve(folderOf(config, "tape.store.url", cwd), path.replace(/^\/\/(?=\/)/, ""));
  mkdirSync(dirname(file), { recursive: true });
  const parameters = new URLSearchParams(query);
  if (processes === "single" && !parameters.has("processes")) parameters.set("processes", processes);
  const text = parameters.toString();
  return `sqlite:${file}${text === "" ? "" : `?${text}`}`;
}
