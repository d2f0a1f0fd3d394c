// Plays seeds on the sources of a folder, as they are at the moment of each request, until one of the given checkers tells
// of a broken invariant; a process of its own.
import { readFileSync } from "node:fs";
import { type LoadHookSync, type ResolveHookSync, registerHooks, stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { planOf as Planner } from "../../simulation/plan.ts";
import type { simulateSeed as Simulate } from "../../simulation/suite.ts";
import { type Kind, kinds } from "./kinds.ts";

/** What the hunt asks for. */
export interface Asked {
  readonly folder: string;
  /** Which request this is. */
  readonly number: number;
  readonly seeds: readonly number[];
  /** Stop at the first seed in which one of these tells; empty: play them all. */
  readonly tellers: readonly string[];
  /** Seeds of other worlds are left out. */
  readonly kind?: Kind | undefined;
}

/** A seed in which something broke. */
export interface Broken {
  readonly seed: number;
  readonly broken: readonly string[];
}

export interface Played {
  readonly found: Broken | undefined;
  /** Seeds in which others told of something. */
  readonly besides: readonly Broken[];
}

export const tellerOf = (line: string): string => line.slice(0, Math.max(0, line.indexOf(":")));

/** Of the modules that belong to a request: each has the sources for itself, read anew, down to the last one. */
const marker = "planted";
const stripped = new Map<string, string>();
const numberOf = (url: string | undefined): string | null =>
  url === undefined || !url.includes(`?${marker}=`) ? null : new URL(url).searchParams.get(marker);

const ownModules: ResolveHookSync = (specifier, context, next) => {
  const found = next(specifier, context);
  const number = numberOf(context.parentURL);
  const ours = found.url.startsWith("file:") && found.url.endsWith(".ts");
  return number === null || !ours ? found : { ...found, url: `${found.url}?${marker}=${number}` };
};

/** Most files are the same in each request: to take the types out of them is the larger part of loading them. */
const ownSources: LoadHookSync = (url, context, next) => {
  if (numberOf(url) === null) return next(url, context);
  const text = readFileSync(fileURLToPath(url), "utf8");
  const source = stripped.get(text) ?? stripTypeScriptTypes(text);
  stripped.set(text, source);
  return { format: "module", source, shortCircuit: true };
};

async function play({ folder, number, seeds, tellers, kind }: Asked): Promise<Played> {
  const from = (file: string): string => `${pathToFileURL(join(folder, "simulation", file)).href}?${marker}=${number}`;
  const { simulateSeed } = (await import(from("suite.ts"))) as { readonly simulateSeed: typeof Simulate };
  const { planOf } = (await import(from("plan.ts"))) as { readonly planOf: typeof Planner };
  const besides: Broken[] = [];
  for (const seed of seeds) {
    if (kind !== undefined && !kinds[kind](planOf(seed))) continue;
    const { broken } = await simulateSeed(seed);
    if (broken.length === 0) continue;
    if (broken.some((line) => tellers.includes(tellerOf(line)))) return { found: { seed, broken }, besides };
    besides.push({ seed, broken });
  }
  return { found: undefined, besides };
}

if (import.meta.main) {
  registerHooks({ resolve: ownModules, load: ownSources });
  process.on("message", async (asked: Asked) => process.send!(await play(asked)));
  process.once("disconnect", () => process.exit());
}
