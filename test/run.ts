// `npm test` and CI run types, lint and every test, and print a last line `N passed, N failed`.
// Arguments (`npm test -- test/tidy`) are passed to vitest, and the static checks are skipped.
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { freemem, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestModule, TestSuite, Vitest } from "vitest/node";
import { sampleDay } from "./sample.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const neededMajor = 24;

interface TestTotals {
  passed: number;
  failed: number;
  /** One line for each failure that is not a failed test. */
  problems: string[];
}

/** The program behind a package's command, so that the checks do not depend on PATH. */
function program(packageName: string, command: string): string {
  const manifest = createRequire(import.meta.url).resolve(`${packageName}/package.json`);
  const { bin } = createRequire(import.meta.url)(manifest) as { bin: Record<string, string> };
  return join(dirname(manifest), bin[command]!);
}

async function staticCheck(name: string, file: string, args: string[]): Promise<boolean> {
  const started = performance.now();
  const child = spawn(process.execPath, [file, ...args], { cwd: root, stdio: "inherit" });
  const code = await new Promise<number | null>((resolve, reject) => child.once("error", reject).once("exit", resolve));
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(code === 0 ? ` ✓ ${name} (${seconds} s)` : ` × ${name} (${seconds} s, exit code ${code})`);
  return code === 0;
}

async function runTests(args: string[]): Promise<TestTotals> {
  const { parseCLI, startVitest } = await import("vitest/node");
  const { filter, options } = parseCLI(["vitest", ...args]);
  const vitest = await startVitest("test", filter, { ...options, root, run: true, watch: false });
  try {
    // vitest counts tests that a name filter excludes as skipped, which is intended then.
    return countTests(vitest, options.testNamePattern !== undefined);
  } finally {
    await vitest.close();
  }
}

function countTests(vitest: Vitest, filtered: boolean): TestTotals {
  const result: TestTotals = { passed: 0, failed: 0, problems: [] };
  const skipped: string[] = [];
  const modules = vitest.state.getTestModules();
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === "passed") result.passed += 1;
      else if (state === "failed") result.failed += 1;
      else skipped.push(`${module.relativeModuleId} > ${test.fullName} (${test.options.mode})`);
    }
    // A file that does not load, or a hook that fails, has no test to carry the failure.
    const broken = [module, ...module.children.allSuites()].filter((task) => hasErrors(task));
    result.failed += broken.length;
    for (const task of broken)
      result.problems.push(`${module.relativeModuleId}: an error outside of a test (${task.type})`);
  }
  if (!filtered && skipped.length > 0) {
    result.failed += skipped.length;
    result.problems.push(`${skipped.length} not run, and a skipped test counts as failed:`, ...skipped);
  }
  const stray = vitest.state.getUnhandledErrors().length;
  if (stray > 0) {
    result.failed += stray;
    result.problems.push(`${stray} unhandled errors`);
  }
  if (result.passed + result.failed === 0) {
    result.failed += 1;
    result.problems.push("no test was found, which counts as one failed");
  }
  return result;
}

function hasErrors(task: TestModule | TestSuite): boolean {
  return task.errors().length > 0;
}

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
    const tests = await runTests(args);
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
