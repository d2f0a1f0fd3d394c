// Plays seeds on the sources of a folder until one of the given checkers tells of a broken invariant; a process of its own.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { planOf as Planner } from "../../src/testing/simulation/plan.ts";
import type { simulateSeed as Simulate } from "../../src/testing/simulation/suite.ts";
import { type Kind, kinds } from "./kinds.ts";

/** What the hunt asks for. */
export interface Asked {
  readonly folder: string;
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

async function play({ folder, seeds, tellers, kind }: Asked): Promise<Played> {
  const from = (file: string): string => pathToFileURL(join(folder, "src/testing/simulation", file)).href;
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
  const played = await play(JSON.parse(process.argv[2]!) as Asked);
  process.stdout.write(JSON.stringify(played), () => process.exit());
}
