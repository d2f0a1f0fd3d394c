// `npm test` and CI run types, lint and every test, and print a last line `N passed, N failed`.
// Arguments (`npm test -- test/tidy`) are passed to vitest, and the static checks are skipped.
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sampleDay } from "./sample.ts";
import { program, runTests, staticCheck, type TestTotals } from "./totals.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const neededMajor = 24;

function staticChecks(): Promise<boolean>[] {
  const tsc = program("typescript", "tsc");
  // Several checker threads are no faster while the tests keep all cores busy, and repeat much of the work.
  const flags = ["--noEmit", "--singleThreaded"];
  return [
    staticCheck("types: tsc --noEmit", tsc, flags),
    staticCheck("types: tsc --noEmit -p dashboard", tsc, [...flags, "-p", "dashboard"]),
    staticCheck("lint: biome check .", program("@biomejs/biome", "biome"), ["check", "."]),
  ];
}

/** Several times the temporary data that tests have at a time. */
const roomBytes = 4 * 2 ** 30;
const dayMs = 86_400_000;

/** In memory if there is room: test data is read within seconds, and a disk is several times slower. */
function temporaryFolder(): string | undefined {
  const memory = "/dev/shm";
  if (process.env.TMPDIR !== undefined || !existsSync(memory)) return undefined;
  const { bavail, bsize } = statfsSync(memory);
  if (Math.min(bavail * bsize, freemem()) < roomBytes) return undefined;
  // A killed run could not clean up, and its files take memory.
  for (const name of readdirSync(memory).filter((entry) => entry.startsWith("tape-test-"))) {
    const { uid, mtimeMs } = statSync(join(memory, name), { throwIfNoEntry: false }) ?? {};
    const isOwn = uid === process.getuid?.() && mtimeMs !== undefined;
    if (isOwn && Date.now() - mtimeMs > dayMs) rmSync(join(memory, name), { recursive: true, force: true });
  }
  const folder = mkdtempSync(join(memory, "tape-test-"));
  chmodSync(folder, 0o755); // PostgreSQL runs as another user
  return folder;
}

async function main(args: string[]): Promise<TestTotals> {
  const total: TestTotals = { passed: 0, failed: 0, problems: [] };
  const count = (ok: boolean) => (ok ? total.passed++ : total.failed++);
  try {
    // The dashboard first, for the tests that open or pack it; checks that only read the sources run in parallel.
    if (args.length === 0) {
      count(await staticCheck("the dashboard builds", join(root, "tools", "dashboard.ts"), ["--if-stale"]));
    }
    const checks = args.length === 0 ? staticChecks() : [];
    const tests = await runTests(root, args);
    for (const check of checks) count(await check);
    total.passed += tests.passed;
    total.failed += tests.failed;
    total.problems.push(...tests.problems);
  } catch (error) {
    console.error(error);
    total.failed += 1;
    total.problems.push("the test command itself failed");
  }
  return total;
}

if (Number.parseInt(process.versions.node, 10) < neededMajor) {
  console.error(
    `Tape's tests need Node ${neededMajor} or newer and this is ${process.version}: ` +
      "run them with `npm install && npm test`, which brings its own Node.",
  );
  process.exit(1);
}
// For every process of this run, and to repeat the same samples later.
process.env.TAPE_TEST_DAY = sampleDay;
console.log(` samples of ${sampleDay}: TAPE_TEST_DAY=${sampleDay} repeats them`);
const folder = temporaryFolder();
if (folder !== undefined) {
  process.env.TMPDIR = folder;
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
}
// Hundreds of processes start from the sources: a shared compile cache saves the next one the work.
const kept = process.env.NODE_COMPILE_CACHE;
const compiled = kept ?? mkdtempSync(join(tmpdir(), "tape-compiled-"));
process.env.NODE_COMPILE_CACHE = compiled;
const { passed, failed, problems } = await main(process.argv.slice(2));
if (kept === undefined) rmSync(compiled, { recursive: true, force: true });
for (const problem of problems) console.error(problem);
const code = failed > 0 ? 1 : 0;
// Exit only after the line is written, even if standard output is a slow pipe.
process.stdout.write(`${passed} passed, ${failed} failed\n`, () => process.exit(code));
