import { join, relative } from "node:path";
import { Child } from "../events/child.ts";
import { installPeers } from "../peers/peers.ts";
import { WorkerProcess } from "../peers/worker-process.ts";
import { say } from "../work.ts";
import type { MapMessage } from "./map-process.ts";
import { type EndlessPart, rounded } from "./part.ts";
import type { EndlessSite, StoreKind } from "./site.ts";

export interface MapSizes {
  readonly children: number;
  readonly concurrency: number;
  /** Of DBOS, which is slower: the rate does not depend on it. */
  readonly dbosChildren: number;
}

const names = { sqlite: "Sqlite", postgres: "Postgres" } as const;

/**
 * One run that calls many children through `tape.map`, each with one step.
 *
 *   mapChildrenPerSecond…   children a second, on each store
 *   mapHeapGrowth…          the process's heap when nine tenths of the children have ended ÷ when one tenth has
 *   mapDbosPerSecond        a workflow of DBOS that starts as many children at a time, on the same PostgreSQL server
 *   mapRatio                children a second on PostgreSQL ÷ those of DBOS
 */
export const map: EndlessPart<MapSizes> = {
  usual: { children: 10_000, concurrency: 100, dbosChildren: 2_000 },
  small: { children: 100, concurrency: 10, dbosChildren: 20 },
  figures: [
    "mapRatio",
    "mapDbosPerSecond",
    ...Object.values(names).flatMap((name) => [`mapChildrenPerSecond${name}`, `mapHeapGrowth${name}`]),
  ],
  async measure(site, sizes) {
    const figures: Record<string, number> = {};
    for (const kind of site.stores) {
      const { ms, earlyHeapMb, lateHeapMb } = await ours(site, kind, sizes);
      figures[`mapChildrenPerSecond${names[kind]}`] = Math.round((sizes.children * 1_000) / ms);
      figures[`mapHeapGrowth${names[kind]}`] = rounded(lateHeapMb / earlyHeapMb, 2);
      say(`${kind}: ${sizes.children} children in ${Math.round(ms)} ms, heap ${earlyHeapMb} to ${lateHeapMb} MB`);
    }
    const own = figures.mapChildrenPerSecondPostgres;
    if (own === undefined) return figures;
    try {
      figures.mapDbosPerSecond = Math.round(await dbosRate(site, sizes));
      figures.mapRatio = rounded(own / figures.mapDbosPerSecond, 1);
    } catch (error) {
      site.skip("map of DBOS", error instanceof Error ? error.message : String(error));
    }
    return figures;
  },
};

async function ours(site: EndlessSite, kind: StoreKind, { children, concurrency }: MapSizes): Promise<MapMessage> {
  const program = relative(join(import.meta.dirname, "../events"), join(import.meta.dirname, "map-process.ts"));
  const child = new Child<MapMessage>(program, [await site.store(kind), String(children), String(concurrency)]);
  try {
    return await child.receive("mapped");
  } finally {
    await child.kill();
  }
}

type Ask = { readonly ask: "map"; readonly count: number; readonly concurrency: number } | { readonly ask: "close" };

async function dbosRate(site: EndlessSite, { dbosChildren, concurrency }: MapSizes): Promise<number> {
  installPeers();
  const settings = { system: "dbos", url: await site.database() };
  const worker = await WorkerProcess.run<Ask>(settings, { program: "endless/dbos-map.mjs" });
  try {
    await worker.ask({ ask: "map", count: Math.ceil(dbosChildren / 10), concurrency }); // warm-up
    const { ms } = await worker.ask({ ask: "map", count: dbosChildren, concurrency }, 900_000);
    return (dbosChildren * 1_000) / ms!;
  } finally {
    await worker.close();
  }
}
