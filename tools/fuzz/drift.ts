import { judge } from "../soak/verdict.ts";
import type { Finding } from "./judge.ts";
import type { Memory } from "./orders.ts";

const mib = 2 ** 20;
/** Fewer readings say nothing about a trend. */
const fewest = 12;
/** The judge leaves out this part of the readings as warm-up, whatever lies between two of them. */
const warmUpMs = 45_000;

/** Memory that grows for as long as requests come, by the readings after collections. */
export function memoryFinding(readings: readonly Memory[]): Finding | undefined {
  if (readings.length < fewest) return undefined;
  const series = [
    { name: "heap", of: ({ heap }: Memory) => heap, bound: { up: 1.1, slack: 4 } },
    { name: "buffers", of: ({ outside }: Memory) => outside, bound: { up: 1.1, slack: 8 } },
    { name: "RSS", of: ({ rss }: Memory) => rss, bound: { up: 1.25, slack: 32 } },
  ];
  const drifting = series
    .map(({ name, of, bound }) =>
      judge({ name, unit: "MiB", values: readings.map((one) => of(one) / mib), bound }, warmUpMs),
    )
    .filter(({ verdict }) => verdict === "DRIFTS")
    .map(({ name, early, late }) => `${name} from ${early.toFixed(1)} to ${late.toFixed(1)} MiB`);
  return drifting.length === 0 ? undefined : { rule: "memory", words: drifting.join(", "), shots: [] };
}
