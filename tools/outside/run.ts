// `npm run outside` runs the suites that other projects publish for their own interfaces, and each adapter inside its
// real framework. Every folder has a dependency tree of its own, which `npm install` of the project leaves alone. Before
// the last line comes a table of the rounds in which agents were crashed and paused at every boundary. The last line is
// one JSON object: `{ "langgraph": { "passed": …, "failed": …, "skipped": … }, … }`. `--only NAME` chooses.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { environmentOf, prepare } from "./folder.ts";
import { readRounds, roundsFile, roundsTable } from "./rounds.ts";
import { type Totals, totalsIn } from "./totals.ts";

const here = import.meta.dirname;
const names = readdirSync(here).filter((name) => existsSync(join(here, name, "run.ts")));

const { values } = parseArgs({ options: { only: { type: "string", multiple: true } } });
const unknown = values.only?.find((name) => !names.includes(name));
if (unknown !== undefined) {
  console.error(`no folder ${unknown}; there are ${names.join(", ")}`);
  process.exit(2);
}

const scratch = mkdtempSync(join(tmpdir(), "tape-outside-rounds-"));
const rounds = join(scratch, "rounds");
const results: Record<string, Totals> = {};
for (const name of values.only ?? names) {
  console.log(`\n── ${name}`);
  results[name] = await suite(name);
}
const noted = readRounds(rounds);
rmSync(scratch, { recursive: true });
if (noted.length > 0) console.log(`\n${roundsTable(noted)}\n`);
const failed = Object.values(results).some(({ passed, failed }) => failed > 0 || passed === 0);
// Exit only after the line is written, even if standard output is a slow pipe.
process.stdout.write(`${JSON.stringify(results)}\n`, () => process.exit(failed ? 1 : 0));

/** Runs one folder's program, shows its output and reads its last line. */
async function suite(name: string): Promise<Totals> {
  const folder = join(here, name);
  try {
    prepare(folder);
  } catch (error) {
    console.error(error);
    return { passed: 0, failed: 1, skipped: 0 };
  }
  const child = spawn(process.execPath, [join(folder, "run.ts")], {
    cwd: folder,
    env: { ...environmentOf(folder), [roundsFile]: rounds },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let tail = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    process.stdout.write(text);
    tail = (tail + text).slice(-4_096);
  });
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once("error", reject).once("close", resolve),
  );
  return totalsIn(tail, code);
}
