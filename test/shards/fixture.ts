import pg from "pg";
import type { Store } from "../../src/store/contract/store.ts";
import { openShards, type ShardUrl } from "../../src/store/postgres/shards/open.ts";
import type { StoreFixture } from "../../testkit/conformance/index.ts";
import { freshDatabase } from "../postgres/database.ts";
import { callerTable, postgresCaller } from "../store/postgres-caller.ts";
import { elapse, empty, shiftedClock } from "../store/postgres-fixture.ts";

/** New databases, one on each server, as a list of shards a, b, … */
export async function shardUrls(servers: readonly string[]): Promise<ShardUrl[]> {
  const urls = await Promise.all(servers.map((server) => freshDatabase(server)));
  return urls.map((url, k) => ({ name: String.fromCharCode(97 + k), url }));
}

/** Where the suite's tenants are, by number of the shard. All others are where their hash says. */
export type Places = Readonly<Record<string, number>>;

/** A transaction of a caller cannot span two databases: the tenants for which a case opens one are on one shard. */
export const apart: Places = { acme: 1, initech: 1, globex: 0 };
export const together: Places = { acme: 1, initech: 1, globex: 1 };
const callersShard = 1;

/** One store of several shards for a whole suite, emptied after each case. */
export function shardedFixtures(servers: () => readonly string[], places = apart): () => Promise<StoreFixture> {
  let ready: ReturnType<typeof prepare> | undefined;
  return async () => {
    ready ??= prepare(servers(), places);
    const { list, store, admins } = await ready;
    const opened: Store[] = [];
    const caller = postgresCaller(list[callersShard]!.url, admins[callersShard]!);
    return {
      store,
      caller,
      another: async () => {
        const other = await openShards({ shards: list });
        opened.push(other);
        return other;
      },
      elapse: async (ms) => void (await Promise.all(admins.map((admin) => admin.query(elapse, [Math.ceil(ms)])))),
      close: async () => {
        await caller.close();
        await Promise.all(opened.map((other) => other.close()));
        await Promise.all(admins.map((admin) => admin.query(empty)));
      },
    };
  };
}

async function prepare(servers: readonly string[], places: Places) {
  const list = await shardUrls(servers);
  const store = await openShards({ shards: list });
  const admins = await Promise.all(list.map(({ url }) => adminOf(url)));
  for (const place of Object.entries(places)) {
    await admins[0]!.query("insert into tape.shard_tenants(tenant, shard, at) values ($1, $2, 0)", place);
  }
  return { list, store, admins };
}

async function adminOf(url: string): Promise<pg.Client> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  admin.on("error", () => {}); // the server is stopped first at the end
  await admin.query(callerTable);
  await admin.query(shiftedClock);
  return admin;
}
