// `npm run chaos -- reactors|server [--seconds N] [--store sqlite|postgres] [--seed S]`: real processes under kill -9 and
// SIGSTOP, with `server` also servers that die and database connections that are cut,
// judged by a world of their own. Exit code 0: every rule held; 1: one was broken, or nothing was hit; 2: wrong usage.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemRandom } from "../../src/base/random.ts";
import { startPostgres } from "../../test/postgres/server.ts";
import { postgresChaos, serverChaos, sqliteChaos } from "./places.ts";
import { type ChaosOptions, chaosReactors } from "./reactors.ts";

const usage = "usage: npm run chaos -- reactors|server [--seconds N] [--store sqlite|postgres] [--seed S]";

interface Wanted {
  readonly what: "reactors" | "server";
  readonly seconds: number;
  readonly store: string | undefined;
  readonly seed: string;
}

function wantedIn(args: readonly string[]): Wanted | undefined {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { seconds: { type: "string" }, store: { type: "string" }, seed: { type: "string" } },
    });
    const seconds = Number(values.seconds ?? 60);
    const known = values.store === undefined || values.store === "sqlite" || values.store === "postgres";
    const what = (["reactors", "server"] as const).find((one) => one === positionals.join());
    if (what === undefined || !(seconds > 0) || !known) return undefined;
    if (what === "server" && values.store === "sqlite") return undefined; // replicas need a database
    return { what, seconds, store: values.store, seed: values.seed ?? String(systemRandom.int(1_000_000)) };
  } catch {
    return undefined;
  }
}

async function round(name: string, options: ChaosOptions): Promise<boolean> {
  console.log(`${name}: ${options.replicas} replicas, ${options.ms / 1_000} s of faults, seed ${options.seed}`);
  const { violations, lines } = await chaosReactors(options);
  for (const line of lines) console.log(`  ${line}`);
  for (const violation of violations.slice(0, 50)) console.log(`  BROKEN: ${violation}`);
  console.log(
    violations.length === 0
      ? `${name}: every rule held`
      : `${name}: ${violations.length} broken with seed ${options.seed}; ledger and logs are in ${options.folder}`,
  );
  if (violations.length === 0) rmSync(options.folder, { recursive: true, force: true });
  return violations.length === 0;
}

async function main({ what, seconds, store, seed }: Wanted): Promise<boolean> {
  let held = true;
  const folder = (): string => mkdtempSync(join(tmpdir(), "tape-chaos-"));
  if (what === "reactors" && store !== "postgres")
    held = (await round("sqlite", sqliteChaos(folder(), seconds, seed))) && held;
  if (store === "sqlite") return held;
  const server = await startPostgres({ major: 18, settings: {} });
  try {
    const place = what === "server" ? serverChaos : postgresChaos;
    const name = what === "server" ? "server on postgres" : "postgres";
    return (await round(name, place(folder(), seconds, seed, server.url))) && held;
  } finally {
    await server.stop();
  }
}

const wanted = wantedIn(process.argv.slice(2));
if (wanted === undefined) {
  console.error(usage);
  process.exitCode = 2;
} else process.exitCode = (await main(wanted)) ? 0 : 1;
