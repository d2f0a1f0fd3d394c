import type { Random } from "../../src/base/random.ts";
import type { Replica } from "./replicas.ts";
import type { World } from "./world.ts";

/** One injection of a fault. */
export interface Injection {
  readonly kind: string;
  /** It hit what its kind is about: see {@link Fault.effectiveWhen}. */
  readonly effective: boolean;
  /** What it hit, as texts that the report can count. */
  readonly hit: readonly string[];
  /** What happened afterwards. */
  readonly outcome: readonly string[];
}

/** One kind of fault, bound to one deployment. */
export interface Fault {
  readonly kind: string;
  /** When an injection counts as effective. A round proves nothing about a kind that never took effect. */
  readonly effectiveWhen: string;
  /** How often it is drawn, relative to the other kinds. */
  readonly weight: number;
  /** How often it is injected before faults are drawn at random. Default 1. */
  readonly initial?: number;
  /** It needs a healthy deployment: every process is up, no repair is in progress. */
  readonly exclusive?: boolean;
  /** Injects it once; resolves when the next fault may start. */
  inject(): Promise<void>;
  /** Called after the last fault: removes whatever this kind leaves behind. */
  cleanUp?(): Promise<void>;
}

/** A fault that this machine cannot inject. */
export interface NotRun {
  readonly kind: string;
  readonly why: string;
}

/** The processes that faults are injected into. */
export interface Deployment {
  readonly replicas: readonly Replica[];
  readonly world: World;
  readonly ttlMs: number;
  readonly random: Random;
  readonly folder: string;
  readonly injections: Injection[];
  /** Held leases of a process, counted by reactor; empty where the store must not be read. */
  leasesOf(worker: string): Promise<Readonly<Record<string, number>>>;
  /** Repairs in the background, while other faults are injected; the round ends after it. */
  repair(work: Promise<void>): void;
  /** Starts the runs; here for faults that end every process at once. */
  readonly loader: { pause(on: boolean): void; kill(): Promise<void>; start(): Promise<void> };
}

/** One replica must stay up, otherwise no process could take over. */
export function targets({ replicas }: Deployment): Replica[] {
  const up = replicas.filter((replica) => replica.up);
  return up.length > 1 ? up : [];
}

export function anyOf<T>(items: readonly T[], random: Random): T | undefined {
  return items.length === 0 ? undefined : items[random.int(items.length)];
}

/** Describes `{ recovery: 2 }` as "a lease holder of recovery". */
export const holding = (leases: Readonly<Record<string, number>>): string[] =>
  Object.keys(leases).map((reactor) => `a lease holder of ${reactor}`);
