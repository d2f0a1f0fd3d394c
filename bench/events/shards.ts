import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { median, say } from "../work.ts";
import { type IdleSizes, idleSizes } from "./announce.ts";
import { type EventPart, type Figures, rounded, worst } from "./part.ts";
import { ShardWorld } from "./shard-world.ts";
import type { EventSite, StoreKind } from "./site.ts";

const shardCount = 16;
const ttlMs = 3_000;

export interface ShardSizes {
  readonly kills: number;
  readonly joins: number;
}

interface Found {
  readonly heldMs: readonly number[];
  readonly evenMs: readonly number[];
  readonly thirdEvenMs: readonly number[];
  readonly fourthEvenMs: readonly number[];
  readonly doubles: number;
  readonly bodies: number;
}

/**
 * Three replicas share 16 shards with a TTL of three seconds; one is killed (kill -9) and another one joins, again and
 * again; then a fourth joins. The worse of both stores.
 *
 *   shardsHeldMaxMs      from the kill until every shard has a body again − the TTL
 *   shardsEvenMaxMs      from then until no replica has two shards more than another
 *   shardsDouble         bodies that began while another one of their shard ran
 *   fourthEvenMs         from the start of a fourth replica until it is even, the worst
 */
export const shards: EventPart<ShardSizes> = {
  usual: { kills: 50, joins: 5 },
  small: { kills: 1, joins: 0 },
  figures: [
    ...["shardsHeldMaxMs", "shardsHeldP50Ms", "shardsEvenMaxMs", "shardsDouble"],
    ...["thirdEvenMaxMs", "fourthEvenMs", "shardKills", "shardBodies"],
  ],
  async measure(site, sizes) {
    // Both at once: the replicas mostly wait.
    const found = await Promise.all(site.stores.map((kind) => onStore(site, kind, sizes)));
    const max = (key: "heldMs" | "evenMs" | "thirdEvenMs" | "fourthEvenMs"): number | null =>
      worst(...found.flatMap((one) => one[key]).map(Math.round));
    return {
      shardsHeldMaxMs: max("heldMs"),
      shardsHeldP50Ms: worst(...found.map(({ heldMs }) => Math.round(median(heldMs)))),
      shardsEvenMaxMs: max("evenMs"),
      shardsDouble: found.reduce((sum, { doubles }) => sum + doubles, 0),
      thirdEvenMaxMs: max("thirdEvenMs"),
      fourthEvenMs: max("fourthEvenMs"),
      shardKills: sizes.kills * found.length,
      shardBodies: found.reduce((sum, { bodies }) => sum + bodies, 0),
    };
  },
};

async function onStore(site: EventSite, kind: StoreKind, { kills, joins }: ShardSizes): Promise<Found> {
  const url = await site.store(kind);
  // A lease must be longer than any transaction may take.
  const address = kind === "sqlite" ? url : `${url}?transaction_bound_ms=1000`;
  await (await openStore(address)).close();
  const world = new ShardWorld(address, shardCount, ttlMs);
  const times = {
    heldMs: [] as number[],
    evenMs: [] as number[],
    thirdEvenMs: [] as number[],
    fourthEvenMs: [] as number[],
  };
  const pause = (): Promise<void> => systemClock.sleep(systemRandom.int(1_500)); // anywhere between two heartbeats
  try {
    for (let k = 0; k < 3; k++) await world.join();
    await world.even();
    for (let k = 0; k < kills; k++) {
      await pause();
      const killedAt = await world.kill(systemRandom.int(3));
      const heldAt = await world.held();
      times.heldMs.push(heldAt - killedAt - ttlMs);
      times.evenMs.push(Math.max(0, (await world.even()) - heldAt));
      const joinedAt = await world.join();
      times.thirdEvenMs.push((await world.even()) - joinedAt);
      if (k % 10 === 9)
        say(`${kind}: ${k + 1} replicas killed, held ${Math.round(Math.max(...times.heldMs))} ms after the TTL`);
    }
    for (let k = 0; k < joins; k++) {
      const joinedAt = await world.join();
      times.fourthEvenMs.push((await world.even()) - joinedAt);
      await pause();
      await world.kill(systemRandom.int(4));
      await world.even();
    }
    say(`${kind}, shards: ${JSON.stringify({ ...times, doubles: world.doubles, bodies: world.bodies })}`);
    return { ...times, doubles: world.doubles, bodies: world.bodies };
  } finally {
    await world.close();
  }
}

/** shardIdleQps: statements a second of each of three idle replicas with 16 shards, the most of them. */
export const shardsIdle: EventPart<IdleSizes> = {
  ...idleSizes,
  figures: ["shardIdleQps"],
  async measure(site, { settleMs, measureMs }): Promise<Figures> {
    if (!site.stores.includes("postgres")) return {};
    const url = await site.store("postgres");
    await (await openStore(url)).close();
    const world = new ShardWorld(url, shardCount, 30_000);
    try {
      for (let k = 0; k < 3; k++) await world.join();
      await world.even();
      await systemClock.sleep(settleMs);
      for (const replica of world.replicas) replica.ask({ countMs: measureMs });
      const counted = await Promise.all(world.replicas.map((replica) => replica.receive("counted")));
      for (const { count } of counted) say(JSON.stringify(count.byName));
      const qps = counted.map(({ count, ms }) => (count.total * 1_000) / ms);
      return { shardIdleQps: rounded(Math.max(...qps)) };
    } finally {
      await world.close();
    }
  },
};
