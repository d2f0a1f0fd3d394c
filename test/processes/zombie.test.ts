import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";
import { type World, zombieCases } from "./zombie.ts";

const postgresUrl = ownPostgres(18);

async function onSqlite(test: TestContext): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "tape-zombie-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url);
  test.onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { url, store, ttlMs: 800 };
}

async function onPostgres(test: TestContext): Promise<World> {
  const database = await freshDatabase(postgresUrl());
  const url = `${database}?transaction_bound_ms=2000&connections=3`;
  const store = await openStore(url);
  test.onTestFinished(async () => {
    await store.close();
    await dropDatabase(database);
  });
  return { url, store, ttlMs: 2_200 };
}

/** Two databases of one server: what matters here is that each process finds the shard of the tenant. */
async function onShards(test: TestContext): Promise<World> {
  const databases = [await freshDatabase(postgresUrl()), await freshDatabase(postgresUrl())];
  const url = `shards:${databases.map((one, k) => `s${k}=${one}?transaction_bound_ms=2000&connections=3`).join(";")}`;
  const store = await openStore(url);
  test.onTestFinished(async () => {
    await store.close();
    for (const database of databases) await dropDatabase(database);
  });
  return { url, store, ttlMs: 2_200 };
}

zombieCases("one SQLite file", onSqlite);
zombieCases("one PostgreSQL database", onPostgres);
zombieCases("two shards", onShards);
