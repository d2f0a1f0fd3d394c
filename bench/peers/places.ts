import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import type { PostgresServer } from "../../test/postgres/server.ts";
import { startServer } from "../served.ts";
import type { RestateServer } from "./restate-server.ts";
import { isOurs, type SystemName } from "./system.ts";

/** Where one system keeps what it writes during one part of the benchmark. */
export interface Place {
  readonly url: string;
  readonly world: string;
  /** Put before the worker's command. */
  readonly prefix: readonly string[];
  close(): Promise<void>;
}

export interface Places {
  readonly folder: string;
  readonly postgres: PostgresServer;
  readonly restate: RestateServer | undefined;
}

/** Absurd's schema is not on npm: its file sql/absurd.sql of the release that package.json names has to be put here. */
const absurdSchema = join(import.meta.dirname, "absurd.sql");

/** Why a system cannot be measured on this machine, if it cannot. */
export function notRunnable(name: SystemName, places: Pick<Places, "restate">): string | undefined {
  if (name === "absurd" && !existsSync(absurdSchema))
    return "its schema is not on npm: save sql/absurd.sql of its release 0.4.0 as bench/peers/absurd.sql";
  if (name === "restate" && places.restate === undefined) return "its server has no build for this platform";
  return undefined;
}

export const absurdSchemaHash = (): string | undefined =>
  existsSync(absurdSchema) ? createHash("sha256").update(readFileSync(absurdSchema)).digest("hex") : undefined;

/** Fresh for each `part`; `shortLeases` where transactions must end sooner than the leases of the killing workload. */
export async function place(name: SystemName, part: string, places: Places, shortLeases = false): Promise<Place> {
  const folder = join(places.folder, `${name}-${part}`);
  await mkdir(folder, { recursive: true });
  const rest = { world: join(folder, "world.txt"), prefix: [], close: async () => {} };
  if (name === "tape-sqlite") return { ...rest, url: `sqlite:${join(folder, "tape.db")}` };
  if (name === "restate") {
    const { ingress, prefix } = places.restate!;
    return { ...rest, url: ingress, prefix };
  }
  const database = await createDatabase(places.postgres.url, `${name}_${part}`.replaceAll("-", "_"));
  if (name === "absurd") await execute(database, readFileSync(absurdSchema, "utf8"));
  const url = isOurs(name) && shortLeases ? `${database}?transaction_bound_ms=1000` : database;
  if (name !== "tape-remote") return { ...rest, url };
  const server = await startServer(url);
  return { ...rest, url: server.url, close: () => server.stop() };
}

export async function createDatabase(server: string, name: string): Promise<string> {
  await execute(server, `create database "${name}"`);
  return server.replace(/\/postgres$/, `/${name}`);
}

export async function execute(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
