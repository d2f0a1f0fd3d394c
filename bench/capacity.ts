import { type Demand, demandOf, type Fleet } from "./capacity/model.ts";
import { saturate } from "./capacity/saturated.ts";
import { simulate } from "./capacity/simulated.ts";
import { rounded } from "./endless/part.ts";
import { EndlessSite, storeKinds } from "./endless/site.ts";
import type { BenchOptions } from "./run.ts";
import { say } from "./work.ts";

/** A million live runs that wake once an hour, beside a thousand that four processes execute. */
export const million: Fleet = {
  waiting: 1_000_000,
  intervalSeconds: 3_600,
  stepsPerWake: 1,
  held: 1_000,
  processes: 4,
  ttlSeconds: 30,
};

/**
 * `npm run bench -- capacity`: the capacity model of docs/internet-scale.md beside a simulation with a million live
 * runs, and what each store does on this machine when it is saturated. `--small`: ten thousand live runs.
 */
export async function benchCapacity({ only, flags, seconds }: BenchOptions): Promise<object> {
  const small = flags.includes("--small");
  const fleet = small ? { ...million, waiting: 10_000, intervalSeconds: 60, held: 100 } : million;
  say(`simulating ${fleet.waiting} live runs in virtual time`);
  const predicted = demandOf(fleet);
  const { late, bytesPerWaitingRun, ...observed } = await simulate(fleet, 60);
  const names = Object.keys(predicted) as (keyof Demand)[];
  const ratios = Object.fromEntries(names.map((name) => [name, rounded(observed[name] / predicted[name])]));
  const saturated: Record<string, object> = {};
  const site = new EndlessSite(
    storeKinds.filter((kind) => only === undefined || only === kind),
    "",
  );
  try {
    for (const kind of site.stores) {
      say(`saturating ${kind}`);
      const { wakes, renewals } = await saturate(await site.store(kind), small ? 2_000 : 10_000, seconds);
      saturated[kind] = { wakes: rounded(wakes, 0), renewals: rounded(renewals, 0) };
    }
  } finally {
    await site.close();
  }
  return { live: fleet.waiting, predicted, observed, ratios, late, bytesPerWaitingRun, saturated };
}
