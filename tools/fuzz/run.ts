// `npm run fuzz -- [--minutes N|--seconds N] [--store sqlite|postgres|both] [--seed S] [--replay FILE]`: sends requests
// drawn from the contract to a real server, for that long on each store. Exit code 0: nothing found; 1: findings, or a
// route was never reached; 2: wrong usage.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemRandom } from "../../src/base/random.ts";
import { type Backend, backends, freshStore } from "../../test/attacks/open-target.ts";
import { startPostgres } from "../../test/postgres/server.ts";
import { memoryFinding } from "./drift.ts";
import { Fuzzer, type FuzzReport } from "./fuzz.ts";
import type { Finding } from "./judge.ts";
import { pasteable, type Shot } from "./shot.ts";

const usage =
  "usage: npm run fuzz -- [--minutes N|--seconds N] [--store sqlite|postgres|both] [--seed S] [--replay FILE]";
/** From this duration on every route must be reached. */
const longSeconds = 120;

interface FuzzRunOptions {
  readonly stores: readonly Backend[];
  readonly seconds: number;
  readonly seed: string;
  readonly replay: readonly Shot[] | undefined;
}

function parseOptions(args: readonly string[]): FuzzRunOptions | undefined {
  try {
    const text = { type: "string" } as const;
    const options = { minutes: text, seconds: text, store: text, seed: text, replay: text };
    const { values } = parseArgs({ args: [...args], options });
    const { minutes, store = "both", seed = String(systemRandom.int(1_000_000)), replay } = values;
    const seconds = minutes === undefined ? Number(values.seconds ?? 60) : Number(minutes) * 60;
    const stores = backends.filter((one) => store === "both" || store === one);
    if (!(seconds > 0) || stores.length === 0 || (minutes !== undefined && values.seconds !== undefined))
      return undefined;
    const shots = replay === undefined ? undefined : (JSON.parse(readFileSync(replay, "utf8")) as Finding).shots;
    return { stores, seconds, seed, replay: shots };
  } catch {
    return undefined;
  }
}

async function fuzzStore(backend: Backend, { seconds, seed, replay }: FuzzRunOptions): Promise<FuzzReport> {
  const server = backend === "postgres" ? await startPostgres({ major: 18 }) : undefined;
  const place = await freshStore(backend, () => server!.url);
  const until = performance.now() + seconds * 1_000;
  try {
    const progress = (line: string): void => console.log(`  ${line}`);
    const enough = (rounds: number): boolean => (replay === undefined ? performance.now() > until : rounds > 0);
    return await Fuzzer.run({ store: place.url, seed, enough, progress, ...(replay && { replay }) });
  } finally {
    await place.clear();
    await server?.stop();
  }
}

function printReport(
  backend: Backend,
  { seed, seconds }: FuzzRunOptions,
  report: FuzzReport,
  findings: readonly Finding[],
): void {
  const { census, memory, passingStalls, worstExcessMs } = report;
  const mib = (bytes = 0): string => (bytes / 2 ** 20).toFixed(1);
  const [first, last] = [memory.at(Math.floor(memory.length / 5)), memory.at(-1)];
  console.log(`${backend}, seed ${seed}, ${seconds} s:
  requests      ${census.requests}, of which ${census.broken} broken, ${census.cut} cut off, ${census.raw} on a socket
  outcomes      ${census.of("accepted")} carried out, ${census.of("read")} read, ${census.of("rejected")} rejected, ${census.of("unknown")} unknown
  tables        checked ${census.tableChecks} times, ${census.judgedTableChecks} of them when nothing may have changed
  worst latency ${worstExcessMs.toFixed(0)} ms beyond the machine's noise${passingStalls.length === 0 ? "" : `; not reproduced: ${passingStalls.join(", ")} ms`}
  memory        heap ${mib(first?.heap)} to ${mib(last?.heap)} MiB, outside ${mib(first?.outside)} to ${mib(last?.outside)}, RSS ${mib(first?.rss)} to ${mib(last?.rss)}
  codes         ${census.codes.map(([code, times]) => `${code} ${times}`).join(", ")}
  reached/sent  ${census.table.join(", ")}
  never reached ${census.neverReached.join(", ") || "none: every route was reached"}`);
  for (const [k, finding] of findings.entries()) {
    const file = join(mkdtempSync(join(tmpdir(), "tape-fuzz-")), `${backend}-${seed}-${k + 1}.json`);
    writeFileSync(file, JSON.stringify(finding, null, 2));
    console.log(`\nFOUND ${finding.rule}: ${finding.message}`);
    for (const shot of finding.shots.slice(0, 3)) console.log(`  ${pasteable(shot, "http://127.0.0.1:7878")}`);
    console.log(`  repeat: npm run fuzz -- --store ${backend} --seed ${seed} --replay ${file}`);
  }
}

async function main(options: FuzzRunOptions): Promise<boolean> {
  console.log(`seed ${options.seed}`);
  let clean = true;
  for (const backend of options.stores) {
    const report = await fuzzStore(backend, options);
    const drift = memoryFinding(report.memory);
    const findings = [...report.findings, ...(drift === undefined ? [] : [drift])];
    printReport(backend, options, report, findings);
    const incomplete =
      options.replay === undefined && options.seconds >= longSeconds && report.census.neverReached.length > 0;
    if (findings.length > 0 || incomplete) clean = false;
  }
  console.log(clean ? "nothing found" : "findings, or a route was never reached");
  return clean;
}

// process.exit() runs the exit handlers, which end servers and remove folders.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const options = parseOptions(process.argv.slice(2));
if (options === undefined) {
  console.error(usage);
  process.exitCode = 2;
} else process.exit((await main(options)) ? 0 : 1);
