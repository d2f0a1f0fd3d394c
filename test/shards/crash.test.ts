import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../src/store/contract/store.ts";
import { openShards } from "../../src/store/postgres/shards/open.ts";
import type { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { rounds, survives } from "../examples/survival.ts";
import { type InTurn, inTime, startServer, virtualClock } from "../kit/virtual-postgres.ts";
import { shardUrls } from "./fixture.ts";

/** Crash and zombie at every boundary. The others are covered by one boundary in eighty on one PostgreSQL database. */
const examples = rounds.filter(([, name]) => name === "treasury" || name === "order");

const kept = ["meta", "migrations", "shard_identity", "shards", "shard_tenants", "residents"];

let servers: Awaited<ReturnType<typeof startServer>>[] = [];
let clients: pg.Client[] = [];
let store: Store;
let inTurn: InTurn;
let empty: string;

beforeAll(async () => {
  servers = await Promise.all([startServer(), startServer()]);
  const list = await shardUrls(servers.map(({ url }) => url));
  const shards = list.map(({ name, url }) => ({ name, url: `${url}?accept_loss=true&connections=4` }));
  store = await openShards({ shards });
  const clocks = await Promise.all(list.map(({ url }) => virtualClock(url)));
  clients = clocks.map(({ client }) => client);
  // Each call sets both clocks first.
  inTurn = (now, call) => clocks.reduce<typeof call>((inner, clock) => () => clock.inTurn(now, inner), call)();
  const { rows } = await clients[0]!.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'tape' and tablename <> all($1)",
    [kept],
  );
  empty = rows
    .map(({ name }) => `delete from tape.${name}${/^(leases|records)$/.test(name) ? " where abs(journal) <> 1" : ""}`)
    .join(";");
});

afterAll(async () => {
  await store?.close();
  await Promise.all(clients.map((client) => client.end()));
  await Promise.all(servers.map((server) => server.stop()));
});

describe("two examples survive a crash at every boundary, on two shards", { timeout: 900_000 }, () => {
  it.each(examples)("%s: %s", async (mode, _, case_) => {
    const report = await survives(case_, mode, {
      openStore: async (time) => {
        await (time as VirtualTime).outside(() => Promise.all(clients.map((client) => client.query(empty))));
        return inTime(store, time as VirtualTime, inTurn);
      },
    });
    expect(report.rounds).toBeGreaterThanOrEqual(report.boundaries.length);
    expect(report.reached).toBe(report.rounds);
  });
});
