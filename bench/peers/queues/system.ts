/** What a process of the queue benchmark is started with. */
export interface QueueSettings {
  readonly system: QueueSystemName;
  /** A store URL, a database URL or the address of a server. */
  readonly url: string;
  readonly limits: Limits;
  /** This process starts jobs and executes none. */
  readonly starts?: boolean;
  /** A file that records when jobs enter and leave their bodies; absent: none is kept. */
  readonly ledger?: string;
  /** The lease time in the workload that kills, for systems that have leases. */
  readonly ttlSeconds?: number;
}

/** Limits over all processes: of the queue, and of each key in it. */
export interface Limits {
  readonly concurrency: number;
  readonly perKey?: number;
}

export interface Job {
  readonly id: string;
  readonly key?: string;
  /** When it was started, in milliseconds of the machine's clock. */
  readonly at?: number;
  /** How long its body takes. */
  readonly holdMs?: number;
}

export type Body = (job: Job) => Promise<unknown>;

/** One queue of one system, each operation in the way that its documentation shows. */
export interface QueueSystem {
  /** Returns when all of them are durable. Nothing takes them before `serve`. */
  enqueue(jobs: readonly Job[]): Promise<unknown>;
  /** From now on this process executes jobs. */
  serve(): Promise<unknown>;
  /** Jobs that are not durably finished. */
  left(): Promise<number>;
  close(): Promise<unknown>;
}

export type OpenQueue = (settings: QueueSettings, body: Body) => Promise<QueueSystem>;

export const queueSystemNames = [
  "tape-sqlite",
  "tape-postgres",
  "dbos",
  "pg-boss",
  "graphile-worker",
  "graphile-batched",
  "bullmq",
] as const;
export type QueueSystemName = (typeof queueSystemNames)[number];

export const isOurQueue = (name: QueueSystemName): boolean => name.startsWith("tape-");

/** Which file in this folder opens a system. */
export function fileOf(name: QueueSystemName): string {
  if (isOurQueue(name)) return "tape.ts";
  return name.startsWith("graphile") ? "graphile-worker.mjs" : `${name}.mjs`;
}

/** Milliseconds on a clock that all processes of this machine share. */
export const sharedNow = (): number => performance.timeOrigin + performance.now();
