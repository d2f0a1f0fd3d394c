import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { suggest } from "../../base/suggest.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { Runner } from "../../sdk/workflow.ts";

/** A function of the user's, named as `file#export`, relative to `folder`. `what` is for messages. */
export async function loadFunction(
  reference: string,
  folder: string,
  what: string,
): Promise<(...args: never[]) => unknown> {
  const cut = reference.lastIndexOf("#");
  const [file, name] = [reference.slice(0, cut), reference.slice(cut + 1)];
  const path = resolve(folder, file);
  const refuse = (message: string, cause?: unknown): TapeError =>
    new TapeError("TAPE_BAD_MODULE", `${what} ${reference}: ${message}`, { reference }, cause);
  if (cut < 1 || name === "") throw refuse("name a file and what it exports, as in ./app/agent.ts#buildRunner");
  if (!existsSync(path)) throw refuse(`there is no file ${path}`);
  let module: Record<string, unknown>;
  try {
    module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    throw refuse(`loading it failed: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  const found = module[name];
  if (found === undefined) {
    const names = Object.keys(module);
    const near = suggest(name, names);
    const hint = near === undefined ? `; it exports ${names.join(", ") || "nothing"}` : `; did you mean ${near}?`;
    throw refuse(`it does not export ${name}${hint}`);
  }
  if (typeof found !== "function") throw refuse(`${name} is no function`);
  return found as (...args: never[]) => unknown;
}

export async function loadRunner(reference: string, folder: string): Promise<Runner> {
  const build = await loadFunction(reference, folder, "runner factory");
  const refuse = (message: string, cause?: unknown): TapeError =>
    new TapeError("TAPE_BAD_MODULE", `runner factory ${reference}: ${message}`, { reference }, cause);
  let runner: unknown;
  try {
    runner = await build();
  } catch (error) {
    if (isTapeError(error)) throw error;
    throw refuse(`it threw: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  if (!isRunner(runner)) throw refuse("it did not return a runner; return what createRunner makes");
  return runner;
}

function isRunner(value: unknown): value is Runner {
  const { workflows, effects } = (value ?? {}) as Partial<Runner>;
  return workflows instanceof Map && effects instanceof Map;
}
