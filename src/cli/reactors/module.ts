import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { suggest } from "../../base/suggest.ts";
import { parseReference, referenceForms } from "../../config/reference.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { Runner } from "../../sdk/workflow.ts";

/** The existing file that a reference names, relative to `folder`; undefined if there is none. */
export function fileOf(reference: string, folder: string): string | undefined {
  return parseReference(reference)
    ?.files.map((file) => resolve(folder, file))
    .find((path) => existsSync(path));
}

/** Loads a user's function, named relative to `folder`. `role` names it in messages. */
export async function loadFunction(
  reference: string,
  folder: string,
  role: string,
): Promise<(...args: never[]) => unknown> {
  const badModule = (message: string, cause?: unknown): TapeError =>
    new TapeError("TAPE_BAD_MODULE", `${role} ${reference}: ${message}`, { reference }, cause);
  const parsed = parseReference(reference);
  if (parsed === undefined) throw badModule(`must be ${referenceForms}`);
  const path = fileOf(reference, folder);
  if (path === undefined)
    throw badModule(`file ${parsed.files.map((file) => resolve(folder, file)).join(" or ")} not found`);
  let module: Record<string, unknown>;
  try {
    module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    throw badModule(`cannot be loaded: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  const name = parsed.exports.find((one) => module[one] !== undefined);
  if (name === undefined) {
    const names = Object.keys(module);
    const near = parsed.exports.map((one) => suggest(one, names)).find((one) => one !== undefined);
    const list = names.length === 0 ? "; it has no exports" : `; it exports ${names.join(", ")}`;
    const hint = near === undefined ? list : `; did you mean ${near}?`;
    throw badModule(`the file does not export ${parsed.exports.join(" or ")}${hint}`);
  }
  const found = module[name];
  if (typeof found !== "function") throw badModule(`${name} is not a function`);
  return found as (...args: never[]) => unknown;
}

/** `key` is the setting or flag that was written, such as `--runner-from`. */
export async function loadRunner(reference: string, folder: string, key = "agent.runner_factory"): Promise<Runner> {
  const role = `${key}: runner factory`;
  const build = await loadFunction(reference, folder, role);
  const badModule = (message: string, cause?: unknown): TapeError =>
    new TapeError("TAPE_BAD_MODULE", `${role} ${reference}: ${message}`, { reference }, cause);
  let runner: unknown;
  try {
    runner = await build();
  } catch (error) {
    if (isTapeError(error)) throw error;
    throw badModule(`it threw an error: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  if (!isRunner(runner)) throw badModule("it did not return a runner; return the result of createRunner");
  return runner;
}

function isRunner(value: unknown): value is Runner {
  const { workflows, effects } = (value ?? {}) as Partial<Runner>;
  return workflows instanceof Map && effects instanceof Map;
}
