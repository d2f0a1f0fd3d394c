// `npm run fuzz -- [--minutes N|--seconds N] [--store sqlite|postgres|both] [--seed S] [--replay FILE]`: requests drawn
// from the contract against a real server, for that long on each store. Exit code 0: nothing found; 1: something was, or
// a route was never reached; 2: wrong usage.
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
/** From so long on every route must have been reached. */
const longSeconds = 120;

interface Wanted {
  readonly stores: readonly Backend[];
  readonly seconds: number;
  readonly seed: string;
  readonly replay: readonly Shot[] | undefined;
}

function wantedIn(args: readonly string[]): Wanted | undefined {
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

async function fuzzed(backend: Backend, { seconds, seed, replay }: Wanted): Promise<FuzzReport> {
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

function tell(backend: Backend, { seed, seconds }: Wanted, report: FuzzReport, findings: readonly Finding[]): void {
  const { census, memory, passingStalls, worstExcessMs } = report;
  const mib = (bytes = 0): string => (bytes / 2 ** 20).toFixed(1);
  const [first, last] = [memory.at(Math.floor(memory.length / 5)), memory.at(-1)];
  console.log(`${backend}, seed ${seed}, ${seconds} s:
  requests      ${census.requests}, of which ${census.broken} broken, ${census.cut} cut off, ${census.raw} on a socket
  outcomes      ${census.of("accepted")} carried out, ${census.of("read")} read, ${census.of("refused")} refused, ${census.of("unknown")} unknown
  tables        looked at ${census.looks} times, ${census.judgedLooks} of them when nothing might have changed
  worst answer  ${worstExcessMs.toFixed(0)} ms beyond the machine's noise${passingStalls.length === 0 ? "" : `; not again: ${passingStalls.join(", ")} ms`}
  memory        heap ${mib(first?.heap)} to ${mib(last?.heap)} MiB, outside ${mib(first?.outside)} to ${mib(last?.outside)}, RSS ${mib(first?.rss)} to ${mib(last?.rss)}
  codes         ${census.codes.map(([code, times]) => `${code} ${times}`).join(", ")}
  done of sent  ${census.table.join(", ")}
  never done    ${census.neverDone.join(", ") || "none: every route was reached"}`);
  for (const [k, finding] of findings.entries()) {
    const file = join(mkdtempSync(join(tmpdir(), "tape-fuzz-")), `${backend}-${seed}-${k + 1}.json`);
    writeFileSync(file, JSON.stringify(finding, null, 2));
    console.log(`\nFOUND ${finding.rule}: ${finding.words}`);
    for (const shot of finding.shots.slice(0, 3)) console.log(`  ${pasteable(shot, "http://127.0.0.1:7878")}`);
    console.log(`  again: npm run fuzz -- --store ${backend} --seed ${seed} --replay ${file}`);
  }
}

async function main(wanted: Wanted): Promise<boolean> {
  console.log(`seed ${wanted.seed}`);
  let clean = true;
  for (const backend of wanted.stores) {
    const report = await fuzzed(backend, wanted);
    const drift = memoryFinding(report.memory);
    const findings = [...report.findings, ...(drift === undefined ? [] : [drift])];
    tell(backend, wanted, report, findings);
    const vacuous = wanted.replay === undefined && wanted.seconds >= longSeconds && report.census.neverDone.length > 0;
    if (findings.length > 0 || vacuous) clean = false;
  }
  console.log(clean ? "nothing found" : "not clean");
  return clean;
}

// With an exit of our own, servers and folders are cleared away.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const wanted = wantedIn(process.argv.slice(2));
if (wanted === undefined) {
  console.error(usage);
  process.exitCode = 2;
} else process.exit((await main(wanted)) ? 0 : 1);
