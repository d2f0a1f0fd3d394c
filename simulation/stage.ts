import type { Log } from "../src/base/log.ts";
import { seededRandom } from "../src/base/random.ts";
import type { Runner } from "../src/sdk/workflow.ts";
import { TapeServer } from "../src/server/server.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import type { BodyCall } from "../testkit/kit/runner.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import type { AlarmService } from "./alarm-service.ts";
import type { BuildClients } from "./build-clients.ts";
import type { WorldCodec } from "./codec.ts";
import type { InsideEvent } from "./inside.ts";
import type { LaneResult } from "./lanes.ts";
import type { ModelAnswer, ModelCall } from "./models.ts";
import type { OrphanWatch } from "./orphan-watch.ts";
import type { Plan } from "./plan.ts";
import type { Fault } from "./plan-faults.ts";
import type { ScopeSight } from "./scope-work.ts";
import type { ShardClients } from "./shard-clients.ts";
import type { SharedStore } from "./shared-store.ts";
import type { StreamCall } from "./streaming.ts";
import type { Sweeper } from "./sweeper.ts";
import { tenant } from "./tenants.ts";
import type { TrialCall } from "./trials.ts";
import type { Wake } from "./wakes.ts";
import type { WorldSink } from "./world-sink.ts";

export { tenant } from "./tenants.ts";

/** A fault that was injected. */
export interface FaultHit {
  readonly fault: Fault;
  readonly at: number;
  readonly boundary: string;
}

/** What all parts of a simulation share. */
export interface Stage {
  readonly plan: Plan;
  readonly time: VirtualTime;
  readonly shared: SharedStore;
  readonly orphanWatch: OrphanWatch;
  readonly runner: Runner;
  /** A runner for one process, whose own work uses that process's clock. */
  readonly runnerOn: (process: Pick<TestProcess, "name" | "clock">, replica: number) => Runner;
  /** Serves the same store; connected replicas reach it through the wire. */
  readonly server: TapeServer;
  readonly sweeper: Sweeper;
  /** Calls the replicas of a serverless world. */
  readonly alarmService: AlarmService | undefined;
  readonly sink: WorldSink | undefined;
  readonly shards: ShardClients | undefined;
  /** Pinned runs of two builds. */
  readonly builds: BuildClients | undefined;
  /** Encrypts the payloads of replicas and clients; undefined: they are in clear. */
  readonly codec: WorldCodec | undefined;
  readonly calls: BodyCall[];
  readonly faultHits: FaultHit[];
  readonly laneResults: LaneResult[];
  /** Tokens of callbacks, in the order in which code first received them. */
  readonly tokens: string[];
  readonly trialCalls: readonly TrialCall[];
  readonly scopeSights: readonly ScopeSight[];
  readonly models: { readonly calls: readonly ModelCall[]; readonly answers: readonly ModelAnswer[] };
  readonly insideEvents: InsideEvent[];
  readonly streamCalls: readonly StreamCall[];
  /** What each drive has read of its journal. */
  readonly wakes: Wake[];
  /** Error codes that the store returned, with counts. */
  readonly refusals: Map<string, number>;
  readonly log: Log;
  healed: boolean;
  /** Calls of replicas to the store so far. */
  storeCalls: number;
}

/** A server in this process that requires no credentials: every caller is admin of the tenant. */
export function serverOn(stage: Pick<Stage, "plan" | "time" | "shared" | "runner">): TapeServer {
  const { plan, time, shared, runner } = stage;
  return new TapeServer({
    store: shared.bare,
    tenant,
    identity: { owner: "server", label: "server" },
    version: "simulated",
    credentials: "none",
    limits: { ratePerSecond: 1e9, rateBurst: 1e9 }, // an hour of virtual calls takes a moment
    runner,
    clock: time,
    random: seededRandom(`server ${plan.seed}`),
  });
}
