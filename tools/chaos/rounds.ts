import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type PostgresServer, startPostgres } from "../../test/postgres/server.ts";
import type { Deployment, NotRun } from "./fault.ts";
import { clockEnv, clockFault, clockKind } from "./faults/clock.ts";
import { connectionFaults, type Line } from "./faults/connections.ts";
import { asyncKind, failoverFault, restartFault, syncKind } from "./faults/database.ts";
import { processFaults } from "./faults/processes.ts";
import { postgresStop, sqliteStop } from "./faults/transaction.ts";
import type { ClockChange } from "./judge.ts";
import { Pair } from "./pair.ts";
import { postgresPlace, serverTtl, shortTtl, sqlitePlace } from "./places.ts";
import { type RoundOptions, type RoundReport, runRound } from "./round.ts";
import { serverFault } from "./servers.ts";
import type { Tools } from "./tools.ts";

export interface RoundSetting {
  readonly ms: number;
  readonly seed: string;
  /** Empty, used by this round only. */
  readonly folder: string;
  readonly tools: Tools;
  readonly progress?: (line: string) => void;
  readonly maxLive?: number;
  /** How often the leader under Patroni is killed. */
  readonly kills?: number;
}

/** What a command can select. */
export const groups = ["reactors", "server", "sink", "push", "patroni", "deploy"] as const;

/** One deployment with its faults, and its share of the time on its store. */
export interface Round {
  readonly name: string;
  readonly group: (typeof groups)[number];
  readonly store: "sqlite" | "postgres";
  readonly share: number;
  run(setting: RoundSetting): Promise<RoundReport>;
}

export const settingOf = ({ ms, seed, folder, progress, maxLive }: RoundSetting) => ({
  ms,
  seed,
  folder,
  ...(progress === undefined ? {} : { progress }),
  ...(maxLive === undefined ? {} : { maxLive }),
});

/** Several processes on one file. */
export const sqliteProcesses: Round = {
  name: "processes on SQLite",
  group: "reactors",
  store: "sqlite",
  share: 0.5,
  async run(setting) {
    const { tools, folder } = setting;
    const ttlMs = shortTtl();
    const place = sqlitePlace(folder);
    const clockChanges: ClockChange[] = [];
    const clock = join(folder, "clock");
    const faketime = "library" in tools.faketime ? tools.faketime.library : undefined;
    const faults: RoundOptions["faults"] = (deployment) => [
      ...processFaults(deployment),
      sqliteStop(deployment, place.file),
      // All processes of a file share a machine, and with it a clock.
      ...(faketime === undefined ? [] : [clockFault(deployment, { of: () => clock, shared: true, clockChanges })]),
    ];
    return runRound({
      ...settingOf(setting),
      name: this.name,
      place,
      replicas: 3,
      ttlMs,
      faults,
      clockChanges,
      notRun: "why" in tools.faketime ? [{ kind: clockKind, why: tools.faketime.why }] : [],
      ...(faketime === undefined ? {} : { env: () => clockEnv(faketime, clock) }),
    });
  },
};

/** Four replicas on one database, each over a proxy of its own that can cut the connection. */
export const postgresProcesses: Round = {
  name: "processes and connections on PostgreSQL",
  group: "reactors",
  store: "postgres",
  share: 0.36,
  async run(setting) {
    const { tools, folder } = setting;
    const faketime = "library" in tools.faketime ? tools.faketime.library : undefined;
    return onPostgres(await startPostgres({ major: 18, settings: {} }), async (server) => {
      const ttlMs = shortTtl();
      const place = await postgresPlace(server.url, 4, ttlMs);
      const clockOf = (slot: number): string => join(folder, `clock-${slot}`);
      const faults: RoundOptions["faults"] = (deployment) => {
        const lines = linesOf(deployment, place.proxyOf);
        return [
          ...processFaults(deployment),
          postgresStop(deployment, place.admin, place.proxyOf),
          ...connectionFaults(deployment, lines, place.admin),
          ...(faketime === undefined
            ? []
            : [clockFault(deployment, { of: ({ slot }) => clockOf(slot), shared: false, clockChanges: [] })]),
          restartFault(deployment, () => server),
        ];
      };
      return runAndClose({
        ...settingOf(setting),
        name: this.name,
        place,
        replicas: 4,
        ttlMs,
        faults,
        notRun: "why" in tools.faketime ? [{ kind: clockKind, why: tools.faketime.why }] : [],
        ...(faketime === undefined
          ? {}
          : { env: (slot: number) => (slot === 0 ? {} : clockEnv(faketime, clockOf(slot))) }),
      });
    });
  },
};

/** The primary dies repeatedly, and its standby takes its place. */
function failoverRound(synchronous: boolean): Round {
  return {
    name: synchronous ? syncKind : asyncKind,
    group: "reactors",
    store: "postgres",
    share: 0.14,
    async run(setting) {
      const pair = await Pair.start(synchronous);
      try {
        const ttlMs = shortTtl();
        const place = await postgresPlace(pair.primary.url, 3, ttlMs);
        const faults: RoundOptions["faults"] = (deployment) => [
          failoverFault(
            deployment,
            pair,
            () => place.retarget(pair.primary.url),
            async () => {
              const leases = await Promise.all(deployment.replicas.map(({ label }) => deployment.leasesOf(label)));
              return leases.some((held) => Object.keys(held).length > 0);
            },
          ),
          ...processFaults(deployment),
        ];
        const options = { ...settingOf(setting), name: this.name, place, replicas: 3, ttlMs, faults };
        return await runAndClose({ ...options, loss: !synchronous });
      } finally {
        await pair.stop();
      }
    },
  };
}
export const synchronousFailover = failoverRound(true);
export const asynchronousFailover = failoverRound(false);

/** Three servers on one database, and six workers that know only the servers' addresses. */
export const servers: Round = {
  name: "three servers on PostgreSQL",
  group: "server",
  store: "postgres",
  share: 0.14,
  async run(setting) {
    return onPostgres(await startPostgres({ major: 18, settings: {} }), async (server) => {
      const ttlMs = serverTtl();
      const place = await postgresPlace(server.url, 3, ttlMs);
      return runAndClose({
        ...settingOf(setting),
        name: this.name,
        place,
        servers: 3,
        replicas: 6,
        ttlMs,
        // Nine processes on a small machine: with fewer runs they settle soon after the faults.
        maxLive: setting.maxLive ?? 30,
        faults: (deployment, all) => [
          serverFault(deployment, all),
          ...processFaults(deployment),
          ...connectionFaults(deployment, serverLines(place.proxies), place.admin),
          restartFault(deployment, () => server),
        ],
      });
    });
  },
};

const linesOf = ({ replicas }: Deployment, proxyOf: (replica: (typeof replicas)[number]) => Line["proxy"]): Line[] =>
  replicas.map((replica) => ({ proxy: proxyOf(replica), worker: () => replica.label }));

const serverLines = (proxies: readonly Line["proxy"][]): Line[] =>
  proxies.map((proxy) => ({ proxy, worker: () => undefined }));

export async function onPostgres<T>(server: PostgresServer, use: (server: PostgresServer) => Promise<T>): Promise<T> {
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}

/** Runs a round and closes its place. */
export async function runAndClose(options: RoundOptions): Promise<RoundReport> {
  try {
    return await runRound(options);
  } finally {
    await options.place.close();
  }
}

export function emptyFolder(folder: string, name: string): string {
  const made = join(folder, name);
  if (!existsSync(made)) mkdirSync(made);
  return made;
}

/** The report of a round that this machine cannot run at all. */
export const impossible = (name: string, notRun: readonly NotRun[]): RoundReport => ({
  name,
  seconds: 0,
  violations: [],
  injections: [],
  faults: [],
  notRun,
  states: {},
  rules: [],
  lost: [],
  lines: [],
});
