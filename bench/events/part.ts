import type { EventSite } from "./site.ts";

/** Figures by name; null: not measured. */
export type Figures = Readonly<Record<string, number | null>>;

/** One part of the benchmark of events. */
export interface EventPart<Sizes> {
  /** The sizes of the bars, and those of a run that takes seconds. */
  readonly usual: Sizes;
  readonly small: Sizes;
  /** Every figure of the part: absent ones are null. */
  readonly figures: readonly string[];
  measure(site: EventSite, sizes: Sizes): Promise<Figures>;
}

export const rounded = (value: number, digits = 3): number => Math.round(value * 10 ** digits) / 10 ** digits;

/** The worse of two figures, where either may be missing. */
export const worst = (...values: readonly (number | null | undefined)[]): number | null => {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length === 0 ? null : Math.max(...known);
};
