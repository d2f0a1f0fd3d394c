import { closeSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { lateBuiltins } from "../../base/late-builtins.ts";
import type { Log } from "../../base/log.ts";
import { TapeError } from "../../model/errors.ts";
import { Statements, type Times } from "./statements.ts";

/** Checks that the file exists and is writable. Warns if other users can read or replace it. */
export function prepareFile(file: string, log: Log): void {
  const folder = dirname(resolve(file));
  try {
    if (statSync(folder).isDirectory()) closeSync(openSync(file, "a", 0o600));
  } catch (error) {
    throw cannotOpen(file, folder, error as NodeJS.ErrnoException);
  }
  if (process.platform === "win32") return;
  const [mode, around] = [statSync(file).mode, statSync(folder).mode];
  if ((mode & 0o077) !== 0) {
    log("warn", "store.readable_by_others", { file, mode: (mode & 0o777).toString(8), next: `chmod 600 ${file}` });
  }
  // In a folder with the sticky bit no user can replace another's file.
  if ((around & 0o022) !== 0 && (around & 0o1000) === 0) {
    log("warn", "store.folder_open", { folder, mode: (around & 0o777).toString(8), next: `chmod 700 ${folder}` });
  }
}

function cannotOpen(file: string, folder: string, error: NodeJS.ErrnoException): TapeError {
  if (error.code === "ENOENT") {
    return new TapeError(
      "TAPE_BAD_STORE_URL",
      `the folder ${folder} does not exist: create it first`,
      { key: "path" },
      error,
    );
  }
  return new TapeError("TAPE_STORE_UNREACHABLE", `${file} cannot be written to (${error.code})`, { file }, error);
}

/** Identifies a file: two paths can lead to one file, and a copy has another inode. */
export interface Identity {
  readonly device: string;
  readonly inode: string;
  readonly path: string;
}

export function identityOf(file: string): Identity {
  const { dev, ino } = statSync(file, { bigint: true });
  return { device: String(dev), inode: String(ino), path: realpathSync(file) };
}

export const isSame = (a: Identity, b: Identity): boolean => a.device === b.device && a.inode === b.inode;

/**
 * Records in the store which file it is. If the recorded file is another one that still exists, this one is a copy:
 * both would drive the same runs, so it is rejected. For a moved or restored file the recorded one does not exist, and
 * from another machine it cannot be checked. `restored`: an operator declares that this file is independent from now
 * on.
 */
export function takeIdentity(statements: Statements, file: string, times: Times, restored: boolean): void {
  const own = identityOf(file);
  statements.begin();
  const row = statements.run("meta.get", {}, times).rows[0];
  const text = JSON.stringify(own);
  if (row?.file !== text) {
    const recorded = typeof row?.file === "string" ? (JSON.parse(row.file) as Identity) : undefined;
    if (recorded !== undefined && !restored && !isSame(recorded, own) && stillExists(recorded, row?.store_id)) {
      throw copiedError(own, recorded);
    }
    statements.run("meta.file", { file: text }, times);
  }
  statements.commit();
}

function copiedError(own: Identity, original: Identity): TapeError {
  const message = `${own.path} is a copy of ${original.path}, which still exists: both would drive the same runs`;
  return new TapeError("TAPE_STORE_COPIED", message, { file: own.path, original: original.path });
}

/** Whether the recorded file is where it was, and is the same store. */
function stillExists(recorded: Identity, store: unknown): boolean {
  try {
    if (!isSame(identityOf(recorded.path), recorded)) return false;
  } catch {
    return false;
  }
  const db = new lateBuiltins.sqlite.DatabaseSync(recorded.path, { readOnly: true, timeout: 0 });
  try {
    const none = { at: 0, now: 0, steady: 0 };
    return new Statements(db).run("meta.get", {}, none).rows[0]?.store_id === store;
  } catch {
    return true; // locked, or of another version: path and inode are enough
  } finally {
    db.close();
  }
}
