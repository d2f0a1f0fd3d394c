import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { EndlessSite } from "./site.ts";

/** Figures by name; null: not measured. */
export type Figures = Readonly<Record<string, number | null>>;

/** One part of the benchmark of runs without end. */
export interface EndlessPart<Sizes> {
  /** The sizes of the bars, and those of a run that takes seconds. */
  readonly usual: Sizes;
  readonly small: Sizes;
  /** Every figure of the part: absent ones are null. */
  readonly figures: readonly string[];
  measure(site: EndlessSite, sizes: Sizes): Promise<Figures>;
}

export const rounded = (value: number, digits = 3): number => Math.round(value * 10 ** digits) / 10 ** digits;

let collect: (() => void) | undefined;

/** The live objects of this process: its heap after a collection. */
export function heapMb(): number {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as () => void;
  }
  collect();
  return process.memoryUsage().heapUsed / 1e6;
}
