// node examples/guarded/main.ts [postgres://user@host/database]
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anyDatabase } from "./any-database.ts";
import { overHttp } from "./http.ts";
import * as postgres from "./postgres.ts";
import type { Result } from "./race.ts";
import { throughARecord } from "./record.ts";
import * as sqlite from "./sqlite.ts";

const url = process.argv[2];
const cases: Record<string, (folder: string, guarded: boolean) => Promise<Result>> = {
  "your table in the store's SQLite file": sqlite.inTheStore,
  "your table in another SQLite file": sqlite.elsewhere,
  "any database, with an adapter": anyDatabase,
  "an HTTP service": overHttp,
  "a printer that checks nothing": throughARecord,
};
if (url !== undefined) {
  cases["your table in the store's PostgreSQL"] = (_, guarded) => postgres.inTheStore(url, guarded);
}

for (const [name, run] of Object.entries(cases)) {
  console.log(name);
  for (const guarded of [false, true]) {
    const folder = await mkdtemp(join(tmpdir(), "guarded-"));
    const { total, rejected = "no write rejected", ...more } = await run(folder, guarded);
    const pages = "printed" in more ? `, pages printed: ${more.printed}` : "";
    console.log(`  ${guarded ? "guarded:  " : "unguarded:"} the total is ${total} (${rejected})${pages}`);
    await rm(folder, { recursive: true, force: true });
  }
}
