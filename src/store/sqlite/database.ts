import { closeSync, openSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { lateBuiltins } from "../../base/late-builtins.ts";
import { TapeError } from "../../model/errors.ts";

/** A seam: tests pass a database whose COMMIT fails after it was carried out. */
export type OpenDatabase = (file: string) => DatabaseSync;

// Busy timeout 0: a blocking one would stall the event loop, and with it the heartbeats, for its whole length.
export const openDatabase: OpenDatabase = (file) => new lateBuiltins.sqlite.DatabaseSync(file, { timeout: 0 });

export interface DatabaseOptions {
  readonly file: string;
  /** One process only: the file stays locked, and other processes are rejected. */
  readonly exclusive: boolean;
  /** false: a power cut may lose acknowledged commits. Never the default. */
  readonly durable: boolean;
  readonly open: OpenDatabase;
}

/** SQLite's name for a database without a file, which is lost with its connection. */
export const inMemory = ":memory:";

export const isMemory = (file: string): boolean => file === inMemory;

/** SQLITE_BUSY and SQLITE_LOCKED, with all their extended codes. */
export function isBusy(error: unknown): boolean {
  const code = (error as { errcode?: number } | undefined)?.errcode;
  return code !== undefined && ((code & 0xff) === 5 || (code & 0xff) === 6);
}

export function connect(options: DatabaseOptions): DatabaseSync {
  const { file, exclusive, durable } = options;
  // Created by us with mode 0600 before SQLite touches it; its -wal and -shm files inherit the mode.
  if (!isMemory(file)) closeSync(openSync(file, "a", 0o600));
  const db = options.open(file);
  try {
    if (exclusive) db.exec("pragma locking_mode = exclusive");
    const mode = Object.values(db.prepare("pragma journal_mode = wal").get() ?? {})[0];
    if (mode !== "wal" && !isMemory(file)) {
      throw new TapeError(
        "TAPE_STORE_NOT_DURABLE",
        `this file system does not support a write-ahead log (journal_mode ${mode})`,
        {
          setting: "journal_mode",
        },
      );
    }
    // 2 = FULL: every commit is on disk before it is acknowledged. NORMAL loses acknowledged rows in a power cut.
    db.exec(`pragma synchronous = ${durable ? 2 : 1}`);
    // 64 MiB of cache, and a checkpoint every 4 MiB of log. From then on the log is overwritten instead of growing, and
    // flushing an existing block takes half the time. Fewer, larger checkpoints gain less than that.
    db.exec("pragma cache_size = -65536; pragma temp_store = memory; pragma wal_autocheckpoint = 1000");
    db.exec("pragma trusted_schema = off");
    if (db.prepare("pragma table_info(sqlite_stat1)").get() === undefined) return db;
    // ANALYZE was run on this file. Its statistics of small tables would make full scans look free permanently, and no
    // statement here needs them.
    db.exec("drop table if exists sqlite_stat1; drop table if exists sqlite_stat4");
  } catch (error) {
    db.close();
    throw error;
  }
  db.close(); // drops the statistics that it has already loaded
  return connect(options);
}
