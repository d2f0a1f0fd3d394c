/**
 * What a fleet of runs costs its store, as arithmetic. `simulated.ts` checks it against the engine itself, in virtual
 * time, with a million live runs; docs/internet-scale.md prints it for 10 and 1,000 shards.
 */
export interface Fleet {
  /** Live runs that wait for a timer: parked, without a lease, without memory in any process. */
  readonly waiting: number;
  /** Seconds between two wake-ups of such a run. */
  readonly intervalSeconds: number;
  /** Steps that a run executes each time. */
  readonly stepsPerWake: number;
  /** Runs that processes execute at this moment, under a renewed lease. */
  readonly held: number;
  readonly processes: number;
  readonly ttlSeconds: number;
}

/** What the store has to do, a second. */
export interface Demand {
  readonly wakes: number;
  readonly records: number;
  /** Calls of `fenced.append`; a store commits many of them together. */
  readonly appends: number;
  readonly renewals: number;
  /** Calls of `claim.renew`. */
  readonly renewCalls: number;
}

/** A heartbeat renews each lease after a third of its TTL. */
const heartbeatsPerTtl = 3;

/** `model/limits.ts`: one call renews this many leases at most. */
const renewalsPerCall = 1_000;

/**
 * Records of a wake-up beside its steps: the term starts, the sleep ends, the next timer is set, the term ends. The
 * first is written by the claim, the others by appends of the holder.
 */
const recordsBesideSteps = 4;

export function demandOf(fleet: Fleet): Demand {
  const { waiting, intervalSeconds, stepsPerWake, held, processes, ttlSeconds } = fleet;
  const wakes = waiting / intervalSeconds;
  const beats = heartbeatsPerTtl / ttlSeconds;
  return {
    wakes,
    records: wakes * (recordsBesideSteps + stepsPerWake),
    appends: wakes * (recordsBesideSteps - 1 + stepsPerWake),
    renewals: held * beats,
    renewCalls: processes * beats * Math.ceil(held / processes / renewalsPerCall),
  };
}

/** What one server was measured to do, or is assumed to do. */
export interface Server {
  /** Wake-ups a second, with one step each, while nothing else happens. */
  readonly wakes: number;
  /** Renewals a second, while nothing else happens. */
  readonly renewals: number;
  readonly bytesPerWaitingRun: number;
  readonly bytesPerRecord: number;
  /** How much of its capacity a server may use, so that it survives a burst and a failover. */
  readonly headroom: number;
}

export interface FleetSize {
  /** Shards that the wake-ups and renewals need. */
  readonly shards: number;
  /** Live runs on each. */
  readonly liveRunsPerShard: number;
  /** Records that a reader of the feed receives from all shards, a second. */
  readonly feedRecords: number;
  /** What all shards hold for live runs. */
  readonly liveBytes: number;
  /** What a day adds, before the archive takes it. */
  readonly bytesPerDay: number;
}

const secondsPerDay = 86_400;

/** Wake-ups and renewals share a server: each takes its part of a second. */
export function sizeOf(fleet: Fleet, server: Server): FleetSize {
  const demand = demandOf(fleet);
  const load = demand.wakes / server.wakes + demand.renewals / server.renewals;
  const shards = Math.max(1, Math.ceil(load / server.headroom));
  return {
    shards,
    liveRunsPerShard: Math.round((fleet.waiting + fleet.held) / shards),
    feedRecords: demand.records,
    liveBytes: fleet.waiting * server.bytesPerWaitingRun,
    bytesPerDay: demand.records * secondsPerDay * server.bytesPerRecord,
  };
}
