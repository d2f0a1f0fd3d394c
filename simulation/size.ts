/** Limits of a plan's size. */
export interface Size {
  /** Share of the plans that remain after the previous sizes. */
  readonly share: number;
  readonly replicas: readonly number[];
  readonly runs: number;
  readonly ops: number;
  /** Nesting depth of operations. */
  readonly depth: number;
  readonly faults: number;
  readonly lastsMs: number;
}

/** Most plans are small: most bugs show in a small world, and a hundred of those cost no more than five large ones. */
export const sizes: readonly Size[] = [
  { share: 0.62, replicas: [1, 2], runs: 1, ops: 2, depth: 1, faults: 2, lastsMs: 10_000 },
  { share: 0.76, replicas: [1, 2, 2], runs: 1, ops: 4, depth: 2, faults: 3, lastsMs: 20_000 },
  { share: 0.75, replicas: [1, 2, 3], runs: 2, ops: 4, depth: 2, faults: 3, lastsMs: 25_000 },
  { share: 1, replicas: [3, 4, 5, 5], runs: 4, ops: 5, depth: 2, faults: 6, lastsMs: 60_000 },
];
