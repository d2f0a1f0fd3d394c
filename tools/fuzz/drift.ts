import { judge } from "../soak/verdict.ts";
import type { Finding } from "./judge.ts";
import type { Memory } from "./memory.ts";

const mib = 2 ** 20;
/** Fewer readings show no trend. */
const minReadings = 12;
/** Passed to the judge as the interval of readings, so that it skips the same share as warm-up whatever the real interval. */
const warmUpMs = 45_000;

/** Reports memory that keeps growing with requests, by readings after garbage collections. */
export function memoryFinding(readings: readonly Memory[]): Finding | undefined {
  if (readings.length < minReadings) return undefined;
  const series = [
    { name: "heap", of: ({ heap }: Memory) => heap, bound: { up: 1.1, slack: 4 } },
    { name: "buffers", of: ({ outside }: Memory) => outside, bound: { up: 1.1, slack: 8 } },
    { name: "RSS", of: ({ rss }: Memory) => rss, bound: { up: 1.25, slack: 32 } },
  ];
  const drifting = series
    .map(({ name, of, bound }) =>
      judge({ name, unit: "MiB", values: readings.map((reading) => of(reading) / mib), bound }, warmUpMs),
    )
    .filter(({ verdict }) => verdict === "DRIFTS")
    .map(({ name, early, late }) => `${name} from ${early.toFixed(1)} to ${late.toFixed(1)} MiB`);
  return drifting.length === 0 ? undefined : { rule: "memory", message: drifting.join(", "), shots: [] };
}
