import type { Log } from "../src/base/log.ts";
import { seededRandom } from "../src/base/random.ts";
import type { Runner } from "../src/sdk/workflow.ts";
import { TapeServer } from "../src/server/server.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import type { BodyCall } from "../testkit/kit/runner.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import type { Handed } from "./lanes.ts";
import type { OrphanWatch } from "./lookout.ts";
import type { Plan } from "./plan.ts";
import type { Fault } from "./plan-faults.ts";
import type { SharedStore } from "./shared-store.ts";
import type { Sweeper } from "./sweeper.ts";
import { tenant } from "./tenants.ts";

export { tenant } from "./tenants.ts";

/** A fault that has bitten. */
export interface FaultHit {
  readonly fault: Fault;
  readonly at: number;
  readonly boundary: string;
}

/** What all parts of one simulation have in common. */
export interface Stage {
  readonly plan: Plan;
  readonly time: VirtualTime;
  readonly shared: SharedStore;
  readonly lookout: OrphanWatch;
  readonly runner: Runner;
  /** The same in a process, whose work of its own takes the time of its clock. */
  readonly runnerOn: (process: Pick<TestProcess, "name" | "clock">) => Runner;
  /** Behind it is the same store; replicas that are connected reach it through the wire. */
  readonly server: TapeServer;
  readonly sweeper: Sweeper;
  readonly calls: BodyCall[];
  readonly bites: FaultHit[];
  readonly handed: Handed[];
  /** Codes with which the store refused somebody, and how often. */
  readonly refusals: Map<string, number>;
  readonly log: Log;
  healed: boolean;
}

/** A server in this process that asks nobody for a credential: whoever calls is admin of the tenant. */
export function serverOn(stage: Pick<Stage, "plan" | "time" | "shared" | "runner">): TapeServer {
  const { plan, time, shared, runner } = stage;
  return new TapeServer({
    store: shared.store,
    tenant,
    identity: { owner: "server", label: "server" },
    version: "simulated",
    credentials: "none",
    limits: { ratePerSecond: 1e9, rateBurst: 1e9 }, // an hour of calls comes in a moment
    runner,
    clock: time,
    random: seededRandom(`server ${plan.seed}`),
  });
}
