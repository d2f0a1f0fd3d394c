// A process that simulates seeds on the sources of a folder until one of the given invariants breaks. Each request reads
// the patched files again, with all modules that depend on them.
import { readFileSync } from "node:fs";
import { type LoadHookSync, type ResolveHookSync, registerHooks, stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { planOf as Planner } from "../../simulation/plan.ts";
import type { simulateSeed as Simulate } from "../../simulation/suite.ts";
import { importersOf, reachedBy } from "./importers.ts";
import { type Kind, kinds } from "./kinds.ts";

/** What the patched copy requests. */
export interface SeedRequest {
  readonly folder: string;
  /** Number of this request, from 1. */
  readonly number: number;
  /** The files below src/ that differ from the originals. */
  readonly patched: readonly string[];
  readonly seeds: readonly number[];
  /** Invariants that detect the bug: stop at the first seed that breaks one of them. Empty: simulate every seed. */
  readonly detectedBy: readonly string[];
  /** Seeds whose plan is of another kind are skipped. */
  readonly kind?: Kind | undefined;
}

/** A seed that broke an invariant. */
export interface Broken {
  readonly seed: number;
  readonly broken: readonly string[];
}

export interface SeedResult {
  readonly found: Broken | undefined;
  /** Seeds that broke only other invariants. */
  readonly others: readonly Broken[];
}

export const invariantOf = (line: string): string => line.slice(0, Math.max(0, line.indexOf(":")));

/** Marks the modules of a request: each request loads its own copy of every module that its patches reach. */
const marker = "planted";
const stripped = new Map<string, string>();
const numberOf = (url: string | undefined): string | null =>
  url === undefined || !url.includes(`?${marker}=`) ? null : new URL(url).searchParams.get(marker);

/** All requests share the modules that no patch reaches: they stay loaded and compiled. */
const shared = "0";
/** The modules that this request loads again. */
let reached: ReadonlySet<string> = new Set();

const ownModules: ResolveHookSync = (specifier, context, next) => {
  const found = next(specifier, context);
  const number = numberOf(context.parentURL);
  const ours = found.url.startsWith("file:") && found.url.endsWith(".ts");
  if (number === null || !ours) return found;
  return { ...found, url: `${found.url}?${marker}=${reached.has(fileURLToPath(found.url)) ? number : shared}` };
};

/** Most files are equal in all requests, and removing their types takes most of the loading time. */
function sourceOf(file: string): string {
  const text = readFileSync(file, "utf8");
  const source = stripped.get(text) ?? stripTypeScriptTypes(text);
  stripped.set(text, source);
  return source;
}

const ownSources: LoadHookSync = (url, context, next) => {
  if (numberOf(url) === null) return next(url, context);
  return { format: "module", source: sourceOf(fileURLToPath(url)), shortCircuit: true };
};

async function runSeeds({ folder, number, patched, seeds, detectedBy, kind }: SeedRequest): Promise<SeedResult> {
  const entries = ["suite.ts", "plan.ts"].map((file) => join(folder, "simulation", file));
  reached = reachedBy(
    patched.map((file) => join(folder, "src", file)),
    importersOf(entries, sourceOf),
  );
  const [suite, plan] = entries.map(
    (file) => `${pathToFileURL(file).href}?${marker}=${reached.has(file) ? number : shared}`,
  );
  const { simulateSeed } = (await import(suite!)) as { readonly simulateSeed: typeof Simulate };
  const { planOf } = (await import(plan!)) as { readonly planOf: typeof Planner };
  const others: Broken[] = [];
  for (const seed of seeds) {
    if (kind !== undefined && !kinds[kind](planOf(seed))) continue;
    const { broken } = await simulateSeed(seed);
    if (broken.length === 0) continue;
    if (broken.some((line) => detectedBy.includes(invariantOf(line)))) return { found: { seed, broken }, others };
    others.push({ seed, broken });
  }
  return { found: undefined, others };
}

if (import.meta.main) {
  registerHooks({ resolve: ownModules, load: ownSources });
  process.on("message", async (request: SeedRequest) => process.send!(await runSeeds(request)));
  process.once("disconnect", () => process.exit());
}
