import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { freshDatabase } from "../../test/postgres/database.ts";
import { type PostgresProxy, startProxy } from "../../test/postgres/proxy.ts";
import type { Replica } from "./replicas.ts";

/** Time in which an idle small machine starts and ends a Node process. */
const startMs = 120;

/** How much slower this machine currently is, between 1 and `max`. Lease TTLs are multiplied by it. */
function slowness(max: number): number {
  const startedAt = systemClock.mono();
  for (let k = 0; k < 3; k++) spawnSync(process.execPath, ["-e", "0"]);
  const startRatio = (systemClock.mono() - startedAt) / 3 / startMs;
  // The machine may be idle now and have been busy during the last minute.
  const loadRatio = (loadavg()[0] ?? 0) / availableParallelism() / 2;
  return Math.min(max, Math.max(1, startRatio, loadRatio));
}

/** The shortest TTL that this machine can keep, so that takeovers happen during the faults, not after them. */
export const shortTtl = (max = 5): number => Math.round(1_500 * slowness(max));
/** Longer, because every renewal through a server takes two hops. */
export const serverTtl = (max = 5): number => Math.round(2_500 * slowness(max));

/** Where the store is, and how each process reaches it. */
export interface Place {
  /** For the replica or server in that slot; 0: for the loader and the observer. */
  urlFor(slot: number): string;
  close(): Promise<void>;
}

export interface SqlitePlace extends Place {
  readonly file: string;
}

export function sqlitePlace(folder: string): SqlitePlace {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "tape.db");
  return { file, urlFor: () => `sqlite:${file}`, close: async () => {} };
}

export interface PostgresPlace extends Place {
  /** The database without a proxy. */
  admin(): string;
  proxyOf(replica: Replica): PostgresProxy;
  proxies: readonly PostgresProxy[];
  /** From now on new connections reach this server. */
  retarget(server: string): void;
}

/** A fresh database, and a proxy for each of `slots` processes. */
export async function postgresPlace(server: string, slots: number, ttlMs: number): Promise<PostgresPlace> {
  const database = await freshDatabase(server);
  const { pathname } = new URL(database);
  const proxies = await Promise.all(Array.from({ length: slots + 1 }, () => startProxy(database)));
  let admin = database;
  return {
    admin: () => admin,
    proxies: proxies.slice(1),
    proxyOf: ({ slot }) => proxies[slot]!,
    urlFor(slot) {
      const url = new URL(proxies[slot]!.url);
      url.searchParams.set("transaction_bound_ms", String(Math.round(ttlMs * 0.65)));
      url.searchParams.set("connections", "4");
      return url.href;
    },
    retarget(to) {
      const url = new URL(to);
      url.pathname = pathname;
      admin = url.href;
      for (const proxy of proxies) proxy.retarget(admin);
    },
    close: async () => {
      await Promise.all(proxies.map((proxy) => proxy.close()));
    },
  };
}
