import { systemClock } from "../../../src/base/clock.ts";
import type { Deployment, Fault } from "../fault.ts";
import { ask, type Member, type PatroniCluster } from "./cluster.ts";
import type { Pulse } from "./pulse.ts";

export const killKind = "kill -9 of the leader";
export const freezeKind = "SIGSTOP of the leader past its key";
export const cutKind = "the leader cut off from etcd";

/** The write gap of each failover, in milliseconds. */
export type Gaps = Map<string, number[]>;

export interface LeaderFaultOptions {
  readonly cluster: PatroniCluster;
  readonly pulse: Pulse;
  readonly gaps: Gaps;
  /** How often the leader is killed before faults are drawn at random. */
  readonly kills: number;
}

interface Hit {
  readonly kind: string;
  readonly initial: number;
  break(leader: Member): void;
  /** After another member was promoted. */
  mend(leader: Member): Promise<void>;
}

/** A frozen leader wakes up while the new one has worked for a while. */
const frozenMs = 3_000;

/** Kills, freezes and isolates the leader. Patroni alone promotes another member. */
export function leaderFaults(deployment: Deployment, options: LeaderFaultOptions): Fault[] {
  const { cluster, kills } = options;
  const few = Math.max(1, Math.floor(kills / 10));
  const hits: Hit[] = [
    {
      kind: killKind,
      initial: kills,
      break: (leader) => cluster.signal(leader, "SIGKILL"),
      mend: async (leader) => cluster.run(leader),
    },
    {
      kind: freezeKind,
      initial: few,
      break: (leader) => cluster.signal(leader, "SIGSTOP"),
      mend: async (leader) => {
        await systemClock.sleep(frozenMs);
        cluster.signal(leader, "SIGCONT");
      },
    },
    {
      kind: cutKind,
      initial: few,
      break: (leader) => leader.link.cut(true),
      mend: async (leader) => leader.link.cut(false),
    },
  ];
  return hits.map((hit) => ({
    kind: hit.kind,
    effectiveWhen: "workers held leases, and Patroni promoted a member with a later timeline",
    weight: 0.2,
    initial: hit.initial,
    exclusive: true,
    inject: () => failover(deployment, options, hit),
  }));
}

async function failover(
  { injections, replicas, leasesOf, repair }: Deployment,
  { cluster, pulse, gaps }: LeaderFaultOptions,
  { kind, break: breakIt, mend }: Hit,
): Promise<void> {
  const leader = await cluster.leader();
  if (leader === undefined) throw new Error("the cluster has no leader");
  const leases = await Promise.all(replicas.map(({ label }) => leasesOf(label)));
  const held = leases.some((some) => Object.keys(some).length > 0);
  const before = await timelineOf(leader);
  const from = systemClock.mono();
  breakIt(leader);
  const next = await cluster.successor(leader);
  const promotedAt = systemClock.mono();
  await mend(leader);
  while (pulse.last < promotedAt) await systemClock.sleep(50);
  gaps.set(kind, [...(gaps.get(kind) ?? []), pulse.gapSince(from)]);
  const later = (await timelineOf(next)) > before;
  injections.push({
    kind,
    effective: held && later,
    hit: [held ? "lease holders" : "no lease"],
    outcome: [later ? "another member was promoted" : "the timeline stayed"],
  });
  repair(cluster.healthy());
}

async function timelineOf({ port }: Member): Promise<string> {
  const { rows } = await ask(port, "select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline");
  return (rows[0] as { timeline: string }).timeline;
}
