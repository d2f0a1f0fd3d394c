import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { decode, encode } from "../../src/base/codec.ts";
import { migrations } from "../../src/store/sqlite/migrate.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { startServer } from "../kit/virtual-postgres.ts";
import { type Program, runId } from "./program.ts";
import { programs } from "./programs.ts";
import { type End, type Round, runProgram } from "./scene.ts";
import { type KeptStore, postgresOf, sqliteOf } from "./stores.ts";

/*
 * Writes the journals of a release: `node test/golden/write.ts 383770f3` checks that commit out into a temporary folder,
 * copies these programs into it, and runs them with its code. The result is the folder of the same name, which is never
 * changed afterwards:
 *
 *   sqlite.db.gz        a SQLite file of that release
 *   postgres.rows.gz    the rows of a PostgreSQL database of that release
 *   kept.jsonl          the number of the newest migration, the time of the snapshot and, for each tenant, its program,
 *                       what its world had seen, and how that release itself ended its runs
 *   journals.jsonl      the journals of all programs that ended, to read; the tests compare them with the store's
 *
 * A program runs once for each cut, in a tenant of its own: to its end, without a client, and crashed before some of its
 * appends. Afterwards the release continues all of them, so that a later one can be held to the same ends.
 */

export interface KeptTenant {
  readonly tenant: string;
  readonly program: string;
  readonly worldThen: End["world"];
  readonly end: End;
}

/** What is known of a release's stores: kept.jsonl. */
export interface Kept {
  readonly schema: number;
  readonly now: { readonly sqlite: number; readonly postgres: number };
  readonly sqlite: readonly KeptTenant[];
  readonly postgres: readonly KeptTenant[];
}

/** Reads a kept.jsonl. */
export function parseKept(text: string): Kept {
  const [head, ...lines] = text
    .trim()
    .split("\n")
    .map((line) => decode(line));
  const tenants = lines as (KeptTenant & { readonly store: string })[];
  const of = (store: string): KeptTenant[] => tenants.filter((one) => one.store === store);
  return { ...(head as Pick<Kept, "schema" | "now">), sqlite: of("sqlite"), postgres: of("postgres") };
}

/** The appends before which a round crashes: at most `max` of them, the last one included. */
export function cutsOf(appends: number, max: number): number[] {
  const count = Math.min(max, appends);
  return Array.from({ length: count }, (_, k) => Math.round(((k + 1) * appends) / count));
}

interface Cut {
  readonly tenant: string;
  readonly program: Program;
  readonly world: End["world"];
}

/** Every program, cut at some of its appends. */
async function cutAll(kept: KeptStore, time: VirtualTime, all: readonly Program[], max: number): Promise<Cut[]> {
  const cuts: Cut[] = [];
  for (const program of all) {
    const round = async (name: string, how: Round): Promise<number> => {
      const tenant = `${program.name}.${name}`;
      const { world, appends } = await runProgram({ time, ...kept, program, tenant }, how);
      cuts.push({ tenant, program, world });
      return appends;
    };
    const appends = await round("ended", {});
    await round("alone", { client: false });
    for (const crashAt of cutsOf(appends, max)) await round(`cut-${crashAt}`, { crashAt });
  }
  return cuts;
}

/** In the other order: the programs that let hours pass come last. */
const inTurn = <T>(all: readonly T[]): T[] => [...all].reverse();

async function writeSqlite(): Promise<Pick<Kept, "sqlite"> & { now: number; content: Uint8Array; journals: string[] }> {
  const time = new VirtualTime();
  const kept = await sqliteOf(time);
  const cuts = await cutAll(kept, time, programs, 5);
  const now = time.now;
  const content = await kept.content();
  const journals: string[] = [];
  for (const { tenant } of cuts.filter((cut) => cut.tenant.endsWith(".ended"))) {
    for (const { kind, data, seq } of await time.during(kept.store.read.journal(tenant, { run: runId })))
      journals.push(encode({ tenant, seq, kind, data }));
  }
  await kept.close();
  const sqlite: KeptTenant[] = [];
  for (const { tenant, program, world } of inTurn(cuts)) {
    const later = new VirtualTime();
    later.jump(now);
    const copy = await sqliteOf(later, content);
    const { appends: _, ...end } = await runProgram(
      { time: later, ...copy, program, tenant },
      { continues: { world } },
    );
    await copy.close();
    sqlite.push({ tenant, program: program.name, worldThen: world, end });
  }
  return { sqlite, now, content, journals };
}

async function writePostgres(): Promise<Pick<Kept, "postgres"> & { now: number; content: Uint8Array }> {
  const server = await startServer();
  const time = new VirtualTime();
  const kept = await postgresOf(server.url, time);
  const cuts = await cutAll(
    kept,
    time,
    programs.filter(({ sqliteOnly }) => sqliteOnly !== true),
    2,
  );
  const now = time.now;
  const content = await kept.content();
  const postgres: KeptTenant[] = [];
  for (const { tenant, program, world } of inTurn(cuts)) {
    const { appends: _, ...end } = await runProgram({ time, ...kept, program, tenant }, { continues: { world } });
    postgres.push({ tenant, program: program.name, worldThen: world, end });
  }
  await kept.close();
  await server.stop();
  return { postgres, now, content };
}

async function write(folder: string): Promise<void> {
  const { sqlite, journals, ...file } = await writeSqlite();
  const { postgres, ...rows } = await writePostgres();
  mkdirSync(folder, { recursive: true });
  const schema = migrations.at(-1)!.number;
  const { now } = file;
  const head = { schema, now: { sqlite: now, postgres: rows.now } };
  const kept = [
    head,
    ...sqlite.map((one) => ({ store: "sqlite", ...one })),
    ...postgres.map((one) => ({ store: "postgres", ...one })),
  ];
  writeFileSync(join(folder, "sqlite.db.gz"), gzipSync(file.content, { level: 9 }));
  writeFileSync(join(folder, "postgres.rows.gz"), gzipSync(rows.content, { level: 9 }));
  writeFileSync(join(folder, "journals.jsonl"), `${journals.join("\n")}\n`);
  writeFileSync(join(folder, "kept.jsonl"), `${kept.map((line) => encode(line)).join("\n")}\n`);
}

/** Runs this file with the code of that commit. */
function writeWith(release: string): void {
  const root = resolve(import.meta.dirname, "../..");
  const folder = mkdtempSync(join(tmpdir(), "tape-golden-"));
  const checkout = join(folder, "checkout");
  try {
    execFileSync("git", ["worktree", "add", "--detach", checkout, release], { cwd: root });
    symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"));
    for (const own of ["test/golden", "test/kit/virtual-postgres.ts"])
      cpSync(join(root, own), join(checkout, own), { recursive: true });
    const script = join(checkout, "test/golden/write.ts");
    execFileSync(process.execPath, [script, "--into", join(import.meta.dirname, release)], { stdio: "inherit" });
  } finally {
    execFileSync("git", ["worktree", "remove", "--force", checkout], { cwd: root });
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === import.meta.filename) {
  const [one, into] = process.argv.slice(2);
  if (one === "--into") await write(into!);
  else if (one !== undefined && /^[0-9a-f]{7,40}$/.test(one)) writeWith(one);
  else throw new Error("name the commit of a release: node test/golden/write.ts 383770f3");
}
