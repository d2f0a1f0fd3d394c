import type { DatabaseSync } from "node:sqlite";
import { type Clock, systemClock } from "../../base/clock.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { errorFields } from "../../base/reason.ts";
import { TapeError } from "../../model/errors.ts";
import { type Limits, limitsOf } from "../../model/limits.ts";
import type { Store } from "../contract/store.ts";
import { assembleStore } from "../sql/assemble.ts";
import { type Migration, newestOf } from "../sql/migrations.ts";
import { WakeHub } from "../wake-hub.ts";
import { SqliteBackend } from "./backend.ts";
import { SqliteCallers } from "./callers.ts";
import { Committer } from "./committer.ts";
import { connect, isBusy, isMemory, type OpenDatabase, openDatabase } from "./database.ts";
import { identityOf, prepareFile, takeIdentity } from "./file.ts";
import { HeadCache } from "./head-cache.ts";
import { isBehind, migrate, migrations } from "./migrate.ts";
import type { Statements, Times } from "./statements.ts";

export interface SqliteOptions {
  /** A path, or ":memory:". */
  readonly file: string;
  /** "single" locks the file for this process: leases and standby become unnecessary, a second process is rejected. */
  readonly processes?: "many" | "single";
  /** "relaxed" may lose acknowledged commits in a power cut. Default "full". */
  readonly durability?: "full" | "relaxed";
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  readonly busyMs?: number;
  /** An operator declares that this file, a copy of another one, is independent from now on. */
  readonly restored?: boolean;
  /** A seam for tests: other migrations than those of this version. */
  readonly migrations?: readonly Migration[];
  /** A seam for tests. */
  readonly open?: OpenDatabase;
}

/** Ten seconds: longer than any transaction of ours, shorter than the usual TTL of 30 s. */
const defaultBusyMs = 10_000;

export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { file, clock = systemClock, random = systemRandom, log = silentLog, busyMs = defaultBusyMs } = options;
  const limits = limitsOf(options.limits);
  const volatile = isMemory(file);
  const relaxed = options.durability === "relaxed";
  const exclusive = options.processes === "single" || volatile;
  const open = options.open ?? openDatabase;
  const up = (): number => clock.up?.() ?? clock.mono();
  let anchor = Math.floor(clock.wall() - up());
  const times = (): Times => ({
    at: Math.floor(clock.wall()),
    now: Math.floor(clock.mono()),
    steady: Math.floor(up()) + anchor,
  });
  const heads = new HeadCache();
  if (relaxed) log("warn", "store.not_durable", { file, durability: "relaxed" });

  if (!volatile) prepareFile(file, log);
  const reconnect = () => connect({ file, exclusive: options.processes === "single", durable: !relaxed, open });
  const behind = (): boolean => isFileBehind(open(file), options.migrations);
  const committer = await retryWhileBusy({ clock, busyMs, log, behind }, () => {
    const opened = new Committer({
      connect: reconnect,
      volatile,
      clock,
      random,
      limits,
      busyMs,
      times,
      forget: () => heads.clear(),
    });
    try {
      migrate(opened.db, log, options.migrations);
      anchor = handleReboot(opened.statements, clock, times(), anchor);
      if (!volatile) takeIdentity(opened.statements, file, times(), options.restored === true);
      return opened;
    } catch (error) {
      opened.db.close();
      throw error;
    }
  });
  const schema = newestOf(options.migrations ?? migrations);
  const wakes = new WakeHub((error) => log("error", "wake.listener_failed", { ...errorFields(error) }));
  const changeWatch = {
    clock,
    version: () => (committer.closed ? undefined : committer.statements.dataVersion()),
    onCommit: () => wakes.emit({ of: "any" }),
    everyMs: 50, // 20 checks a second at some microseconds each; a handoff between processes takes at most that long
    state: { watchers: exclusive ? 1 : 0 }, // an exclusive file has no other processes: never check
  };
  const forget = (): void => heads.clear();
  const identity = volatile ? undefined : identityOf(file);
  const shared = { committer, wakes, limits, busyMs, times };
  const callers = new SqliteCallers({ ...shared, file: identity, durable: !relaxed, clock, forget });
  const driver = new SqliteBackend({
    ...shared,
    callers,
    heads,
    exclusive,
    durability: volatile ? "none" : relaxed ? "relaxed" : "full",
    schema,
    changeWatch,
  });
  return assembleStore(driver, random);
}

function isFileBehind(db: DatabaseSync, known: SqliteOptions["migrations"]): boolean {
  try {
    return isBehind(db, known);
  } finally {
    db.close();
  }
}

/**
 * The lease clock restarts with the machine, so every term from an earlier boot has expired. Returns how far the wall
 * clock was ahead of the boot's clock when the first process of this boot opened the file.
 */
function handleReboot(statements: Statements, clock: Clock, times: Times, anchor: number): number {
  statements.begin();
  const rebooted = statements.run("meta.boot", { boot: clock.boot(), anchor }, times).count > 0;
  if (rebooted) statements.run("leases.reboot", {}, times);
  statements.run("meta.anchor", { anchor }, times);
  const row = statements.run("meta.get", {}, times).rows[0];
  statements.commit();
  return Number(row?.anchor);
}

interface BusyRetry {
  readonly clock: Clock;
  readonly busyMs: number;
  readonly log: Log;
  /** Whether the file has yet to be migrated: then the process that keeps it locked is probably migrating it. */
  readonly behind: () => boolean;
}

/**
 * Retries while another process opens, migrates or recovers the file, with the event loop free. A migration of a large
 * file is waited for without a limit.
 */
async function retryWhileBusy<T>({ clock, busyMs, log, behind }: BusyRetry, work: () => T): Promise<T> {
  let start = clock.mono();
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (clock.mono() - start > busyMs) {
        if (!behind()) throw new TapeError("TAPE_STORE_BUSY", "another process keeps the file locked", {}, error);
        log("warn", "store.migration_waits", { waitingFor: "another process that keeps the file locked" });
        start = clock.mono();
      }
      await clock.sleep(10);
    }
  }
}
