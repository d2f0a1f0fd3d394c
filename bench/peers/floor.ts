import { join } from "node:path";
import { openStore } from "../../src/host/open-store.ts";
import { type RawWriter, rawPostgres, rawSqlite } from "../raw.ts";
import type { SystemName } from "./system.ts";

/** Rows a second, straight into the table of records with nothing around it: no engine on this disk can be quicker. */
export interface Floor {
  readonly rows1: number;
  readonly rows128: number;
}

/** A ten-step run is made durable twelve times, one after the other: when it begins, after each step, when it ends. */
export const commitsPerStep = 1.2;

/** The floor under one of ours, measured right after it; undefined for all others. */
export async function measureFloor(name: SystemName, url: string, ms: number): Promise<Floor | undefined> {
  if (name !== "tape-sqlite" && name !== "tape-postgres") return undefined;
  const raw = name === "tape-sqlite" ? await besideFile(url) : await besideSchema(url);
  try {
    await raw.run(1, ms / 3); // warm
    return { rows1: await raw.run(1, ms), rows128: await raw.run(128, ms) };
  } finally {
    await raw.close();
  }
}

async function besideFile(url: string): Promise<RawWriter> {
  const file = join(url.slice("sqlite:".length), "..", "raw.db");
  await (await openStore(`sqlite:${file}`)).close();
  return rawSqlite(file);
}

async function besideSchema(url: string): Promise<RawWriter> {
  await (await openStore(`${url}?schema=raw`)).close();
  return rawPostgres(url, "raw");
}
