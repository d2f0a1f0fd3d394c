import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Store } from "../../../src/store/contract/store.ts";
import { openSqlite, type SqliteOptions } from "../../../src/store/sqlite/open.ts";

/** A folder with one SQLite file, and everything opened on it; removed together. */
export interface Place {
  readonly folder: string;
  readonly file: string;
  open(options?: Partial<SqliteOptions>): Promise<Store>;
  /** A connection that knows nothing of Tape. */
  raw(): DatabaseSync;
  close(): Promise<void>;
}

export function placeForFile(): Place {
  const folder = mkdtempSync(join(tmpdir(), "tape-sqlite-"));
  const file = join(folder, "tape.db");
  const stores: Store[] = [];
  const raws: DatabaseSync[] = [];
  return {
    folder,
    file,
    async open(options = {}) {
      const store = await openSqlite({ file, ...options });
      stores.push(store);
      return store;
    },
    raw() {
      const db = new DatabaseSync(file, { timeout: 0 });
      raws.push(db);
      return db;
    },
    async close() {
      for (const db of raws) if (db.isOpen) db.close();
      await Promise.all(stores.map((store) => store.close()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
