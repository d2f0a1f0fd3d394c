import { join } from "node:path";
import type { ChaosOptions } from "./reactors.ts";

/** Leases as short as a busy two-core machine can keep: takeovers happen while the faults last, not after them. */
const ttlMs = 1_500;

/** Two processes on one file. */
export function sqliteChaos(folder: string, seconds: number, seed: string): ChaosOptions {
  return { url: `sqlite:${join(folder, "tape.db")}`, replicas: 2, ttlMs, ms: seconds * 1_000, seed, folder };
}

/** Four replicas on one database. */
export function postgresChaos(folder: string, seconds: number, seed: string, database: string): ChaosOptions {
  const url = new URL(database);
  url.searchParams.set("transaction_bound_ms", "1000");
  url.searchParams.set("connections", "4");
  return { url: url.href, replicas: 4, ttlMs, ms: seconds * 1_000, seed, folder };
}

/** Three servers on one database, six workers that know nothing but their addresses. */
export function serverChaos(folder: string, seconds: number, seed: string, database: string): ChaosOptions {
  return { ...postgresChaos(folder, seconds, seed, database), servers: 3, replicas: 6, ttlMs: 2_500 };
}
