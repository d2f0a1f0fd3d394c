import { measureRatios, type RatioSizes, small as smallRatios, usual as usualRatios } from "../events.ts";
import type { BenchOptions } from "../run.ts";
import { say } from "../work.ts";
import { announceIdle } from "./announce.ts";
import { fanoutKills } from "./kill.ts";
import { largeStore } from "./large-store.ts";
import { latency } from "./latency.ts";
import type { EventPart, Figures } from "./part.ts";
import { serverlessIdle, serverlessKills } from "./serverless.ts";
import { shards, shardsIdle } from "./shards.ts";
import { sinkRates } from "./sinks.ts";
import { EventSite, type StoreKind, storeKinds } from "./site.ts";
import { steps } from "./steps.ts";
import { timers } from "./timers.ts";

const ratio: EventPart<RatioSizes> = {
  usual: usualRatios,
  small: smallRatios,
  figures: ["fanoutRatioSqlite", "fanoutRatioPostgres"],
  measure: async (site, sizes) => ({ ...(await measureRatios(sizes, site.stores)) }),
};

/** Each part by its name. Those that only wait come last. */
export const eventParts = {
  ratio,
  sinks: sinkRates,
  steps,
  latency,
  "large-store": largeStore,
  timers,
  "fanout-kills": fanoutKills,
  "writer-kills": serverlessKills,
  shards,
  "shards-idle": shardsIdle,
  announce: announceIdle,
  serverless: serverlessIdle,
} as const;

export type EventPartName = keyof typeof eventParts;
const partNames = Object.keys(eventParts) as EventPartName[];

export interface EventPlan {
  readonly parts: readonly EventPartName[];
  readonly stores: readonly StoreKind[];
  readonly small: boolean;
}

/** `--small`: in seconds. `--only kill,sqlite`: parts and stores, by their names. */
export async function benchEvents({ only, flags }: BenchOptions): Promise<object> {
  const { figures, notRun } = await measureEvents(planOf(only, flags));
  return { ...figures, notRun };
}

export function planOf(only: string | undefined, flags: readonly string[]): EventPlan {
  const names = only?.split(",") ?? [];
  const parts = partNames.filter((name) => names.includes(name));
  const stores = storeKinds.filter((kind) => names.includes(kind));
  const unknown = names.filter((name) => ![...partNames, ...storeKinds].includes(name as never));
  if (unknown.length > 0) {
    throw new Error(`unknown: ${unknown.join(", ")}\n--only takes ${[...partNames, ...storeKinds].join(", ")}`);
  }
  return {
    parts: parts.length === 0 ? partNames : parts,
    stores: stores.length === 0 ? storeKinds : stores,
    small: flags.includes("--small"),
  };
}

export interface EventFigures {
  readonly figures: Figures;
  /** Parts that could not be measured here, with the reason. */
  readonly notRun: Readonly<Record<string, string>>;
}

export async function measureEvents({ parts, stores, small }: EventPlan): Promise<EventFigures> {
  const site = new EventSite(stores);
  const names = Object.values(eventParts).flatMap((part) => part.figures);
  const figures: Record<string, number | null> = Object.fromEntries(names.map((name) => [name, null]));
  try {
    for (const name of parts) {
      const started = performance.now();
      const part = eventParts[name] as EventPart<unknown>;
      const found = await part.measure(site, small ? part.small : part.usual);
      Object.assign(figures, found);
      say(`${name}: ${JSON.stringify(found)}, ${Math.round((performance.now() - started) / 1000)} s`);
    }
  } finally {
    await site.close();
  }
  return { figures, notRun: site.notRun };
}
