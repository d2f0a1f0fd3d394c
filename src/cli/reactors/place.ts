import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isRemote } from "../../client/remote.ts";
import { environmentToken } from "../../client/token.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { TapeError } from "../../model/errors.ts";
import type { Store } from "../../store/contract/store.ts";

/** Relative paths are relative to where they were written: in a file to its folder, else to the working directory. */
export function folderOf(config: LoadedConfig, path: string, cwd: string): string {
  const from = config.origins.get(path)?.from;
  return from === "environment" || from === "flag" ? cwd : config.folder;
}

/** How to reach a server: its token is not sent where only a file of this folder wants it. */
export function remoteOf(
  config: LoadedConfig,
  url: string,
): { readonly remote?: { readonly token: string | undefined } } {
  if (!/^https?:/i.test(url)) return {};
  const from = config.origins.get("tape.store.url")?.from;
  const fromFile = from === "environment" || from === "flag" ? undefined : (config.file ?? "tape.yaml");
  return { remote: { token: environmentToken(url, process.env, fromFile === undefined ? {} : { fromFile }) } };
}

/**
 * Whose runs. Through a server the token says so: under another name everything would look empty, without a word. A
 * command that a person types follows the token unless --tenant (`flag`) says otherwise; a program's settings must agree.
 */
export function tenantOf(store: Store, config: LoadedConfig, typed?: { readonly flag: string | undefined }): string {
  const { tenant } = config.settings.tape;
  if (!isRemote(store)) return typed?.flag ?? tenant;
  const set = config.origins.get("tape.tenant")?.from === "default" ? undefined : tenant;
  const said = typed === undefined ? set : typed.flag;
  const own = store.remote.tenant;
  if (said === undefined || said === own) return own;
  const where = typed === undefined ? "tape.tenant" : "--tenant";
  const message = `${where}: the token is of tenant ${own}, not of ${said}; leave it out, or use a token of ${said}`;
  throw new TapeError("TAPE_BAD_CONFIG", message, { tenant: own });
}

/** The store's URL with an absolute path, in a folder that exists, opened by as many processes as was said. */
export function storeUrl(config: LoadedConfig, cwd: string): string {
  const { url, processes } = config.settings.tape.store;
  const [path = "", query] = url.slice("sqlite:".length).split("?", 2);
  if (!url.startsWith("sqlite:") || path === ":memory:") return url;
  const file = resolve(folderOf(config, "tape.store.url", cwd), path.replace(/^\/\/(?=\/)/, ""));
  mkdirSync(dirname(file), { recursive: true });
  const parameters = new URLSearchParams(query);
  if (processes === "single" && !parameters.has("processes")) parameters.set("processes", processes);
  const text = parameters.toString();
  return `sqlite:${file}${text === "" ? "" : `?${text}`}`;
}
