import { type Clock, systemClock } from "../../base/clock.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { errorFields } from "../../base/reason.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import { type Limits, limitsOf } from "../../model/limits.ts";
import type { RetentionOps, ShardOps, Store, StoreHealth } from "../contract/store.ts";
import { validated } from "../validate/store.ts";
import { WakeHub } from "../wake-hub.ts";
import { shardedClaim } from "./claim.ts";
import type { Directory } from "./directory.ts";
import { shardedFenced } from "./fenced.ts";
import { shardedIntake } from "./intake.ts";
import { shardedRead } from "./read.ts";
import { Router } from "./router.ts";
import { Shard, type ShardSource } from "./shard.ts";
import { shardedWithin } from "./within.ts";

export interface ShardedOptions {
  readonly shards: readonly ShardSource[];
  readonly directory: (shards: readonly Shard[]) => Directory;
  /** What operators can do with the shards; absent: nothing. */
  readonly operations?: (router: Router) => ShardOps;
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly log?: Log;
}

/** How long a call waits for a tenant that is moving, before it is refused. */
const moveWaitMs = 10_000;

/**
 * Several stores as one. What belongs to a tenant is in its shard, so each promise of the contract is kept by the store
 * of that shard. Only calls that concern all tenants ask all shards.
 */
export async function openSharded(options: ShardedOptions): Promise<Store> {
  const { clock = systemClock, log = silentLog } = options;
  const wakes = new WakeHub((error) => log("error", "wake.listener_failed", { ...errorFields(error) }));
  const shards = options.shards.map((source) => new Shard(source, { clock, log, wakes }));
  try {
    await openAll(shards);
    const directory = options.directory(shards);
    const router = new Router({ shards, directory, clock, waitMs: moveWaitMs });
    const shardOps = options.operations?.(router);
    return validated({ ...composed(router, wakes, limitsOf(options.limits)), ...(shardOps && { shards: shardOps }) });
  } catch (error) {
    await Promise.all(shards.map((shard) => shard.close()));
    throw error;
  }
}

/** A shard that is down is opened later, by the first call that needs it. Any other error is one of the list. */
async function openAll(shards: readonly Shard[]): Promise<void> {
  const results = await Promise.allSettled(shards.map((shard) => shard.call(async () => {})));
  const errors = results.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));
  for (const error of errors) if (!isTapeError(error, "TAPE_STORE_UNREACHABLE")) throw error;
  if (errors.length === shards.length) throw errors[0];
}

function composed(router: Router, wakes: WakeHub, limits: Limits): Store {
  const { shards, directory } = router;
  const open = shards.flatMap(({ store }) => store ?? []);
  return {
    backend: open[0]!.backend,
    limits,
    transactionBoundMs: Math.max(...open.map(({ transactionBoundMs }) => transactionBoundMs)),
    exclusive: false,
    intake: shardedIntake(router, (store) => store.intake),
    claim: shardedClaim(router),
    fenced: shardedFenced(router, limits),
    read: shardedRead(router),
    within: shardedWithin(router),
    retention: shardedRetention(router),
    once: (key) => shardedIntake(router, (store) => store.once(key)),
    health: () => healthOf(router),
    onWake: (listener) => wakes.on(listener),
    async close() {
      directory.close();
      await Promise.all(shards.map((shard) => shard.close()));
    },
  };
}

async function healthOf(router: Router): Promise<StoreHealth> {
  const { found } = await router.all((store) => store.health());
  const held = found.find(({ value }) => value.feedBlockedBy !== undefined)?.value.feedBlockedBy;
  const shardsDown = router.shards.flatMap(({ name, down }) =>
    down === undefined ? [] : [{ name, why: down.error.message, forMs: Math.round(down.forMs) }],
  );
  return { ...(shardsDown.length > 0 && { shardsDown }), ...(held !== undefined && { feedBlockedBy: held }) };
}

function shardedRetention(router: Router): RetentionOps {
  return {
    async identity(tenant) {
      if (tenant === undefined) return router.any((store) => retentionOf(store).identity());
      return router.read(tenant, (store) => retentionOf(store).identity(tenant));
    },
    ended: (tenant, after, until, limit) =>
      router.read(tenant, (store) => retentionOf(store).ended(tenant, after, until, limit)),
    date: (fence, policy, after, until, limit) =>
      router.fenced(fence.tenant, (store) => retentionOf(store).date(fence, policy, after, until, limit)),
    due: (tenant, until, limit) => router.read(tenant, (store) => retentionOf(store).due(tenant, until, limit)),
    postpone: (fence, roots, delayMs) =>
      router.fenced(fence.tenant, (store) => retentionOf(store).postpone(fence, roots, delayMs)),
    records: (tenant, journals, page) =>
      router.read(tenant, (store) => retentionOf(store).records(tenant, journals, page)),
    chunks: (tenant, runs, after) => router.read(tenant, (store) => retentionOf(store).chunks(tenant, runs, after)),
    blobs: (tenant, runs, after) => router.read(tenant, (store) => retentionOf(store).blobs(tenant, runs, after)),
    prune: (fence, trees, file, checkpoint) =>
      router.fenced(fence.tenant, (store) => retentionOf(store).prune(fence, trees, file, checkpoint)),
  };
}

function retentionOf({ retention }: Store): RetentionOps {
  if (retention === undefined) throw new TapeError("TAPE_INVARIANT", "the store of a shard has no retention");
  return retention;
}
