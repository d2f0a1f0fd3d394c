import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { suggest } from "../../base/suggest.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { Runner } from "../../sdk/workflow.ts";

/** Loads a user's function, named `file#export` relative to `folder`. `role` names it in messages. */
export async function loadFunction(
  reference: string,
  folder: string,
  role: string,
): Promise<(...args: never[]) => unknown> {
  const cut = reference.lastIndexOf("#");
  const [file, name] = [reference.slice(0, cut), reference.slice(cut + 1)];
  const path = resolve(folder, file);
  const badModule = (message: string, cause?: unknown): TapeError =>
    new TapeError("TAPE_BAD_MODULE", `${role} ${reference}: ${message}`, { reference }, cause);
  if (cut < 1 || name === "") throw badModule("must be FILE#EXPORT, such as ./app/agent.ts#buildRunner");
  if (!existsSync(path)) throw badModule(`file ${path} not found`);
  let module: Record<string, unknown>;
  try {
    module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    throw badModule(`cannot be loaded: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  const found = module[name];
  if (found === undefined) {
    const names = Object.keys(module);
    const near = suggest(name, names);
    const list = names.length === 0 ? "; it has no exports" : `; it exports ${names.join(", ")}`;
    const hint = near === undefined ? list : `; did you mean ${near}?`;
    throw badModule(`the file does not export ${name}${hint}`);
  }
  if (typeof found !== "function") throw badModule(`${name} is not a function`);
  return found as (...args: never[]) => unknown;
}

export async function loadRunner(reference: string, folder: string): Promise<Runner> {
  const build = await loadFunction(reference, folder, "runner factory");
  const badModule = (message: string, cause?: unknown): TapeError =>
    new TapeError("TAPE_BAD_MODULE", `runner factory ${reference}: ${message}`, { reference }, cause);
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
