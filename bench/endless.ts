import { before } from "./endless/before.ts";
import { builds } from "./endless/builds.ts";
import { labels } from "./endless/labels.ts";
import { map } from "./endless/map.ts";
import type { EndlessPart, Figures } from "./endless/part.ts";
import { peers } from "./endless/peers.ts";
import { prune } from "./endless/prune.ts";
import { EndlessSite, type StoreKind, storeKinds } from "./endless/site.ts";
import { wake } from "./endless/wake.ts";
import type { BenchOptions } from "./run.ts";
import { say } from "./work.ts";

/** Each part by its name. */
export const endlessParts = { wake, map, labels, peers, before, prune, builds } as const;

export type EndlessPartName = keyof typeof endlessParts;
const partNames = Object.keys(endlessParts) as EndlessPartName[];

/** The release before runs without end, labels, retention, builds and scopes. */
const previousRelease = "383770f3";

export interface EndlessPlan {
  readonly parts: readonly EndlessPartName[];
  readonly stores: readonly StoreKind[];
  readonly small: boolean;
  readonly base: string;
  /** Sizes that replace those of a part that has them. */
  readonly sizes: Readonly<Record<string, number>>;
}

/** Options that set one size, with what each sets. */
const sizeFlags = { "--runs": "runs", "--kills": "kills" } as const;

/**
 * `--small`: in seconds. `--only wake,sqlite`: parts and stores, by their names. `--base COMMIT`: what `before` means.
 * `--runs N --kills N`: sizes of `prune`, such as `--only prune,sqlite --runs 20000 --kills 50`.
 */
export async function benchEndless({ only, flags }: BenchOptions): Promise<object> {
  const { figures, notRun } = await measureEndless(planOf(only, flags));
  return { ...figures, notRun };
}

export function planOf(only: string | undefined, flags: readonly string[]): EndlessPlan {
  const names = only?.split(",") ?? [];
  const parts = partNames.filter((name) => names.includes(name));
  const stores = storeKinds.filter((kind) => names.includes(kind));
  const unknown = names.filter((name) => ![...partNames, ...storeKinds].includes(name as never));
  if (unknown.length > 0) {
    throw new Error(`unknown: ${unknown.join(", ")}\n--only takes ${[...partNames, ...storeKinds].join(", ")}`);
  }
  const flagValue = (flag: string): string | undefined => {
    const k = flags.indexOf(flag);
    return k < 0 ? undefined : flags[k + 1];
  };
  const sizes = Object.entries(sizeFlags).flatMap(([flag, size]) => {
    const value = flagValue(flag);
    if (value === undefined) return [];
    if (!/^\d{1,9}$/.test(value)) throw new Error(`${flag} is a whole number, not ${value}`);
    return [[size, Number(value)] as const];
  });
  return {
    parts: parts.length === 0 ? partNames : parts,
    stores: stores.length === 0 ? storeKinds : stores,
    small: flags.includes("--small"),
    base: flagValue("--base") ?? previousRelease,
    sizes: Object.fromEntries(sizes),
  };
}

export interface EndlessFigures {
  readonly figures: Figures;
  /** Parts that could not be measured here, with the reason. */
  readonly notRun: Readonly<Record<string, string>>;
}

export async function measureEndless({ parts, stores, small, base, sizes }: EndlessPlan): Promise<EndlessFigures> {
  const site = new EndlessSite(stores, base);
  const names = Object.values(endlessParts).flatMap((part) => part.figures);
  const figures: Record<string, number | null> = Object.fromEntries(names.map((name) => [name, null]));
  try {
    for (const name of parts) {
      const started = performance.now();
      const part = endlessParts[name] as EndlessPart<unknown>;
      const found = await part.measure(site, sizesOf(small ? part.small : part.usual, sizes));
      Object.assign(figures, found);
      say(`${name}: ${JSON.stringify(found)}, ${Math.round((performance.now() - started) / 1000)} s`);
    }
  } finally {
    await site.close();
  }
  return { figures, notRun: site.notRun };
}

/** The sizes of a part, with those that the command line sets and the part has. */
function sizesOf(sizes: unknown, set: EndlessPlan["sizes"]): unknown {
  const own = Object.entries(set).filter(([name]) => Object.hasOwn(sizes as object, name));
  return { ...(sizes as object), ...Object.fromEntries(own) };
}
