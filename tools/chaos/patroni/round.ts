import { openStore } from "../../../src/host/open-store.ts";
import { freshDatabase } from "../../../test/postgres/database.ts";
import { processFaults } from "../faults/processes.ts";
import { type Place, shortTtl } from "../places.ts";
import { type RoundReport, runRound } from "../round.ts";
import { impossible, type Round, type RoundSetting, settingOf } from "../rounds.ts";
import { PatroniCluster } from "./cluster.ts";
import { type Gaps, killKind, leaderFaults } from "./faults.ts";
import { type ClusterPrograms, findPatroni } from "./programs.ts";
import { Pulse } from "./pulse.ts";

/** Three PostgreSQL servers under Patroni, whose leader dies and is isolated; workers have a URL with all three. */
export const patroni: Round = {
  name: "three PostgreSQL servers under Patroni",
  group: "patroni",
  store: "postgres",
  share: 1,
  async run(setting) {
    let programs: ClusterPrograms;
    try {
      programs = findPatroni(setting.folder);
    } catch (error) {
      return impossible(this.name, [{ kind: killKind, why: (error as Error).message }]);
    }
    const cluster = await PatroniCluster.start(programs, setting.folder);
    try {
      return await underLoad(this.name, cluster, programs.versions, setting);
    } finally {
      await cluster.stop();
    }
  },
};

async function underLoad(
  name: string,
  cluster: PatroniCluster,
  versions: string,
  setting: RoundSetting,
): Promise<RoundReport> {
  const ttlMs = shortTtl();
  const place = await placeOf(cluster, ttlMs);
  const store = await openStore(place.urlFor(0));
  const pulse = new Pulse(store);
  const gaps: Gaps = new Map();
  try {
    pulse.start();
    const report = await runRound({
      ...settingOf(setting),
      name,
      place,
      replicas: 3,
      ttlMs,
      maxLive: setting.maxLive ?? 30, // with three servers on a small machine they settle soon after the faults
      wholeOpening: true,
      faults: (deployment) => [
        ...leaderFaults(deployment, { cluster, pulse, gaps, kills: setting.kills ?? 1 }),
        ...processFaults(deployment),
      ],
    });
    await pulse.finish();
    const written = await pulse.judge(store);
    const { epoch, facts } = await store.read.settings();
    return {
      ...report,
      rules: [...report.rules, written],
      violations: [...report.violations, ...written.broken],
      lines: [...report.lines, versions, ...gapLines(gaps), `store epoch ${epoch}, ${facts.servers}`],
    };
  } finally {
    await pulse.finish();
    await store.close();
  }
}

async function placeOf(cluster: PatroniCluster, ttlMs: number): Promise<Place> {
  const leader = await cluster.leader();
  const { pathname } = new URL(await freshDatabase(`postgres://tape@127.0.0.1:${leader!.port}/postgres`));
  const hosts = cluster.members.map(({ port }) => `127.0.0.1:${port}`).join(",");
  const settings = `transaction_bound_ms=${Math.round(ttlMs * 0.65)}&connections=4&target_session_attrs=read-write`;
  return { urlFor: () => `postgres://tape@${hosts}${pathname}?${settings}`, close: async () => {} };
}

function gapLines(gaps: Gaps): string[] {
  return [...gaps].map(([kind, all]) => {
    const sorted = all.toSorted((a, b) => a - b);
    const [min, median, max] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)].map(
      (ms) => `${((ms ?? 0) / 1_000).toFixed(1)} s`,
    );
    return `write gap, ${kind}, ${all.length} times: min ${min}, median ${median}, max ${max}`;
  });
}
