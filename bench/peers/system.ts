import type { World } from "./world.ts";

/** What a worker process is started with. */
export interface WorkerSettings {
  readonly system: SystemName;
  /** A store URL, a database URL or the address of a server. */
  readonly url: string;
  /** The file that stands for the world. */
  readonly world: string;
  /** The lease time in the workload that kills, for systems that have leases. */
  readonly ttlSeconds: number;
  /** Whether this process comes after one that was killed. */
  readonly recovers: boolean;
}

/** Each operation in the plain way that the system's own documentation shows. */
export interface System {
  /** Pulls its work: for each run at work another one waits, so that it never idles between two. */
  readonly pulls: boolean;
  /** Sets the number of concurrent runs. */
  concurrency(runs: number): Promise<void>;
  /** A run of ten steps, started and finished. A system that pulls says when its first line ran. */
  ten(): Promise<{ readonly started?: number }>;
  /** A run of one step, started and finished. */
  one(): Promise<unknown>;
  /** A run that sleeps until `due` (wall clock); answers when the line after the sleep ran. */
  nap(due: number): Promise<number>;
  /** Starts a payment and answers as soon as it is durable. */
  pay(id: string): Promise<unknown>;
  close(): Promise<void>;
}

export type Open = (settings: WorkerSettings, world: World) => Promise<System>;

export const systemNames = [
  "tape-sqlite",
  "tape-postgres",
  "tape-remote",
  "restate",
  "dbos",
  "absurd",
  "pg-boss",
] as const;
export type SystemName = (typeof systemNames)[number];

export const isOurs = (name: SystemName): boolean => name.startsWith("tape-");
export const onPostgres = (name: SystemName): boolean => name !== "tape-sqlite" && name !== "restate";

/** What each step records: about as much as a small answer of a service. */
export const payload = "x".repeat(90);

/** The steps of a payment, and how long the upstream takes to respond. The second one must not happen twice. */
export const payment = [
  { step: "quote", ms: 50 },
  { step: "wire", ms: 300 },
  { step: "book", ms: 50 },
  { step: "mail", ms: 50 },
  { step: "done", ms: 0 },
] as const;
