import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { freshDatabase } from "../../test/postgres/database.ts";
import { type PostgresProxy, startProxy } from "../../test/postgres/proxy.ts";
import type { Replica } from "./replicas.ts";

/** What a small machine with nothing else to do needs to start Node, run it and end it. */
const startMs = 120;

/** How much slower this machine is at the moment, for what is measured in leases: between 1 and `most`. */
function slowness(most: number): number {
  const begun = systemClock.mono();
  for (let k = 0; k < 3; k++) spawnSync(process.execPath, ["-e", "0"]);
  const started = (systemClock.mono() - begun) / 3 / startMs;
  // A moment may be quiet where the last minute was not.
  const crowded = (loadavg()[0] ?? 0) / availableParallelism() / 2;
  return Math.min(most, Math.max(1, started, crowded));
}

/** Leases as short as this machine can keep: takeovers happen while the faults last, not after them. */
export const shortTtl = (most = 5): number => Math.round(1_500 * slowness(most));
/** Behind a server every renewal takes two steps. */
export const serverTtl = (most = 5): number => Math.round(2_500 * slowness(most));

/** Where the store is, and how each process reaches it. */
export interface Place {
  /** For the replica or server in that slot; 0: whoever starts runs and looks on. */
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
  /** The database itself, past every proxy. */
  admin(): string;
  proxyOf(replica: Replica): PostgresProxy;
  proxies: readonly PostgresProxy[];
  /** Everybody who connects from now on reaches this server. */
  retarget(server: string): void;
}

/** A fresh database, and a line of its own for each of `slots` processes. */
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
