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
