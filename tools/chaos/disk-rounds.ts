import { chmodSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { serverUser } from "../../test/postgres/binaries.ts";
import { startPostgres } from "../../test/postgres/server.ts";
import type { Deployment, NotRun } from "./fault.ts";
import { type DiskErrorLogs, errorFault, errorKind, fullFault, fullKind, someWorker } from "./faults/disk.ts";
import { postgresPower, powerEnv, powerKind, sqlitePower } from "./faults/power.ts";
import { processFaults } from "./faults/processes.ts";
import { postgresPlace, shortTtl, sqlitePlace } from "./places.ts";
import { type RoundOptions, runRound } from "./round.ts";
import { emptyFolder, impossible, onPostgres, type Round, runAndClose, settingOf } from "./rounds.ts";
import { SmallDisk } from "./small-disk.ts";
import { makeReadable, type Tools } from "./tools.ts";

/** Large enough for ten minutes of writes, small enough to be filled within moments. */
const diskMb = 192;

const missing = ({ mounts, limits }: Tools): NotRun[] => [
  ...("why" in mounts ? [{ kind: fullKind, why: mounts.why }] : []),
  ...("why" in limits ? [{ kind: errorKind, why: limits.why }] : []),
];

/** Errors of a failing disk in the workers' logs. */
const errorLogsOf = ({ replicas }: Deployment): DiskErrorLogs => ({
  files: () => replicas.map(({ log }) => log),
  pattern: /disk is full|No space left|disk I\/O error|File too large/i,
});

/** The file is on a small disk that fills up; writes of single processes fail. */
export const sqliteDisk: Round = {
  name: "a failing disk under SQLite",
  group: "reactors",
  store: "sqlite",
  share: 0.25,
  async run(setting) {
    const { tools, folder } = setting;
    const notRun = missing(tools);
    if (notRun.length === 2) return impossible(this.name, notRun);
    const disk = "ok" in tools.mounts ? new SmallDisk(join(folder, "disk"), diskMb) : undefined;
    try {
      const faults: RoundOptions["faults"] = (deployment) => [
        ...(disk === undefined ? [] : [fullFault(deployment, disk.folder, errorLogsOf(deployment))]),
        ...("ok" in tools.limits ? [errorFault(deployment, someWorker(deployment), errorLogsOf(deployment))] : []),
        ...processFaults(deployment),
      ];
      const ttlMs = shortTtl();
      const place = sqlitePlace(disk?.folder ?? folder);
      const options = { ...settingOf(setting), name: this.name, place, replicas: 2, ttlMs, faults, notRun };
      return await runRound(options);
    } finally {
      disk?.close();
    }
  },
};

/** A power cut: all processes end at once, and every unsynced write is lost. */
export const sqlitePowerCut: Round = {
  name: "power cuts under SQLite",
  group: "reactors",
  store: "sqlite",
  share: 0.25,
  async run(setting) {
    const { tools, folder } = setting;
    if ("why" in tools.preload) return impossible(this.name, [{ kind: powerKind, why: tools.preload.why }]);
    const shadow = emptyFolder(folder, "synced");
    const data = emptyFolder(folder, "data");
    const ttlMs = shortTtl();
    const place = sqlitePlace(data);
    const env = powerEnv(tools.preload.library, data, shadow);
    return runRound({
      ...settingOf(setting),
      name: this.name,
      place,
      replicas: 2,
      ttlMs,
      env: () => env,
      secluded: true,
      faults: (deployment) => [sqlitePower(deployment, place.file, shadow)],
    });
  },
};

/** Small WAL segments fill up soon and are cheap to copy. */
const init = ["--wal-segsize=1"];
const settings = { max_wal_size: "8MB", min_wal_size: "2MB", checkpoint_timeout: "30s" };

export const postgresDisk: Round = {
  name: "a failing disk under PostgreSQL",
  group: "reactors",
  store: "postgres",
  share: 0.12,
  async run(setting) {
    const { tools, folder } = setting;
    const notRun = missing(tools);
    if (notRun.length === 2) return impossible(this.name, notRun);
    makeReadable(folder);
    const disk = "ok" in tools.mounts ? new SmallDisk(join(folder, "disk"), diskMb) : undefined;
    const parent = disk === undefined ? {} : { parent: disk.folder };
    try {
      return await onPostgres(await startPostgres({ major: 18, settings, init, ...parent }), async (server) => {
        const ttlMs = shortTtl();
        const place = await postgresPlace(server.url, 3, ttlMs);
        const log = join(server.data, "server.log");
        const faults: RoundOptions["faults"] = (deployment) => {
          const { files, pattern } = errorLogsOf(deployment);
          const errorLogs = { files: () => [...files(), log], pattern };
          const revive = async (): Promise<void> => {
            if (!running(server.pid)) await server.resume();
          };
          return [
            ...(disk === undefined ? [] : [fullFault(deployment, disk.folder, errorLogs, revive)]),
            ...("ok" in tools.limits
              ? [errorFault(deployment, () => backends(place.admin()), errorLogs, serverUser)]
              : []),
            ...processFaults(deployment),
          ];
        };
        const options = { ...settingOf(setting), name: this.name, place, replicas: 3, ttlMs, faults };
        return runAndClose({ ...options, notRun });
      });
    } finally {
      disk?.close();
    }
  },
};

export const postgresPowerCut: Round = {
  name: "power cuts under PostgreSQL",
  group: "reactors",
  store: "postgres",
  share: 0.1,
  async run(setting) {
    const { tools, folder } = setting;
    if ("why" in tools.preload) return impossible(this.name, [{ kind: powerKind, why: tools.preload.why }]);
    makeReadable(folder);
    const shadow = emptyFolder(folder, "synced");
    const parent = emptyFolder(folder, "data");
    for (const made of [shadow, parent]) chmodSync(made, 0o777);
    const env = powerEnv(tools.preload.library, parent, shadow);
    return onPostgres(await startPostgres({ major: 18, settings, init, parent, env }), async (server) => {
      const ttlMs = shortTtl();
      const place = await postgresPlace(server.url, 3, ttlMs);
      return runAndClose({
        ...settingOf(setting),
        name: this.name,
        place,
        replicas: 3,
        ttlMs,
        faults: (deployment) => [postgresPower(deployment, server, shadow), ...processFaults(deployment)],
      });
    });
  },
};

function running(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Every connection of ours, because it is unknown which of them writes next. */
async function backends(url: string): Promise<number[]> {
  const client = new pg.Client({ connectionString: url, application_name: "tape chaos" });
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ pid: number }>(
      "select pid from pg_stat_activity where application_name = 'durable-tape'",
    );
    return rows.map(({ pid }) => pid);
  } finally {
    await client.end();
  }
}
