import type { Random } from "../../src/base/random.ts";
import type { Replica } from "./replicas.ts";
import type { World } from "./world.ts";

/** A fault as it was played once. */
export interface Strike {
  readonly kind: string;
  /** It hit what its kind is about: see {@link Fault.counts}. */
  readonly bitten: boolean;
  /** What it hit, in words that can be counted. */
  readonly hit: readonly string[];
  /** What came of it. */
  readonly outcome: readonly string[];
}

/** One kind of fault, at work on one deployment. */
export interface Fault {
  readonly kind: string;
  /** When it counts as bitten. One that never bites makes the round worthless. */
  readonly counts: string;
  /** How often it is drawn beside the others. */
  readonly weight: number;
  /** How often it is played before chance goes on. Default 1. */
  readonly first?: number;
  /** It meets a deployment at rest: everybody is up, nothing else is being mended. */
  readonly alone?: boolean;
  /** Plays it once; resolves when the next one may begin. */
  play(): Promise<void>;
  /** The faults are over: nothing of this one is left behind. */
  calm?(): Promise<void>;
}

/** A fault that this machine cannot play. */
export interface NotRun {
  readonly kind: string;
  readonly why: string;
}

/** What faults are played on. */
export interface Deployment {
  readonly replicas: readonly Replica[];
  readonly world: World;
  readonly ttlMs: number;
  readonly random: Random;
  readonly folder: string;
  readonly strikes: Strike[];
  /** Held leases of a process by the reactor that holds them; empty where nobody may look. */
  leasesOf(worker: string): Promise<Readonly<Record<string, number>>>;
  /** Goes on while others strike; the round ends when it is done. */
  mend(work: Promise<void>): void;
  /** Whoever starts runs, for faults that end every process at once. */
  readonly loader: { pause(on: boolean): void; kill(): Promise<void>; start(): Promise<void> };
}

/** Somebody must go on working, or nobody would take over. */
export function targets({ replicas }: Deployment): Replica[] {
  const up = replicas.filter((replica) => replica.up);
  return up.length > 1 ? up : [];
}

export function anyOf<T>(items: readonly T[], random: Random): T | undefined {
  return items.length === 0 ? undefined : items[random.int(items.length)];
}

/** `{ recovery: 2 }` as "a holder of leases of recovery". */
export const holding = (leases: Readonly<Record<string, number>>): string[] =>
  Object.keys(leases).map((reactor) => `a holder of leases of ${reactor}`);
