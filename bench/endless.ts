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
}

/** `--small`: in seconds. `--only wake,sqlite`: parts and stores, by their names. `--base COMMIT`: what `before` means. */
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
  const k = flags.indexOf("--base");
  return {
    parts: parts.length === 0 ? partNames : parts,
    stores: stores.length === 0 ? storeKinds : stores,
    small: flags.includes("--small"),
    base: (k < 0 ? undefined : flags[k + 1]) ?? previousRelease,
  };
}

export interface EndlessFigures {
  readonly figures: Figures;
  /** Parts that could not be measured here, with the reason. */
  readonly notRun: Readonly<Record<string, string>>;
}

export async function measureEndless({ parts, stores, small, base }: EndlessPlan): Promise<EndlessFigures> {
  const site = new EndlessSite(stores, base);
  const names = Object.values(endlessParts).flatMap((part) => part.figures);
  const figures: Record<string, number | null> = Object.fromEntries(names.map((name) => [name, null]));
  try {
    for (const name of parts) {
      const started = performance.now();
      const part = endlessParts[name] as EndlessPart<unknown>;
      const found = await part.measure(site, small ? part.small : part.usual);
      Object.assign(figures, found);
      say(`${name}: ${JSON.stringify(found)}, ${Math.round((performance.now() - started) / 1000)} s`);
    }
  } finally {
    await site.close();
  }
  return { figures, notRun: site.notRun };
}
