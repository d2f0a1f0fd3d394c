// What `npm test` and CI run: types, lint, then every test, closed by one line `N passed, N failed`.
// With arguments (`npm test -- test/tidy`) they go to vitest and the static checks are left out.
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

interface Tally {
  passed: number;
  failed: number;
  /** One sentence for everything that makes the run red without being a failed test. */
  complaints: string[];
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

async function runTests(args: string[]): Promise<Tally> {
  const { parseCLI, startVitest } = await import("vitest/node");
  const { filter, options } = parseCLI(["vitest", ...args]);
  const vitest = await startVitest("test", filter, { ...options, root, run: true, watch: false });
  try {
    // Tests that a name filter leaves out count as skipped in vitest, which is then what was asked for.
    return tally(vitest, options.testNamePattern !== undefined);
  } finally {
    await vitest.close();
  }
}

function tally(vitest: Vitest, filtered: boolean): Tally {
  const result: Tally = { passed: 0, failed: 0, complaints: [] };
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
      result.complaints.push(`${module.relativeModuleId}: an error outside of a test (${task.type})`);
  }
  if (!filtered && skipped.length > 0) {
    result.failed += skipped.length;
    result.complaints.push(`${skipped.length} not run, and a skipped test counts as failed:`, ...skipped);
  }
  const stray = vitest.state.getUnhandledErrors().length;
  if (stray > 0) {
    result.failed += stray;
    result.complaints.push(`${stray} unhandled errors`);
  }
  if (result.passed + result.failed === 0) {
    result.failed += 1;
    result.complaints.push("no test was found, which counts as one failed");
  }
  return result;
}

function hasErrors(task: TestModule | TestSuite): boolean {
  return task.errors().length > 0;
}

function staticChecks(): Promise<boolean>[] {
  const tsc = program("typescript", "tsc");
  // Several checkers at a time end no sooner where the tests keep all cores busy, and do much of the work twice.
  const flags = ["--noEmit", "--singleThreaded"];
  return [
    staticCheck("types: tsc --noEmit", tsc, flags),
    staticCheck("types: tsc --noEmit -p dashboard", tsc, [...flags, "-p", "dashboard"]),
    staticCheck("lint: biome check .", program("@biomejs/biome", "biome"), ["check", "."]),
  ];
}

/** The most that tests have lying about at a time, several times over. */
const roomBytes = 4 * 2 ** 30;
const dayMs = 86_400_000;

/** In memory, where there is room: what tests write is read within seconds, and a disk costs several times the work. */
function temporaryFolder(): string | undefined {
  const memory = "/dev/shm";
  if (process.env.TMPDIR !== undefined || !existsSync(memory)) return undefined;
  const { bavail, bsize } = statfsSync(memory);
  if (Math.min(bavail * bsize, freemem()) < roomBytes) return undefined;
  // A run that was killed could not tidy up, and what it left takes memory.
  for (const name of readdirSync(memory).filter((one) => one.startsWith("tape-test-"))) {
    const { uid, mtimeMs } = statSync(join(memory, name), { throwIfNoEntry: false }) ?? {};
    const ours = uid === process.getuid?.() && mtimeMs !== undefined;
    if (ours && Date.now() - mtimeMs > dayMs) rmSync(join(memory, name), { recursive: true, force: true });
  }
  const folder = mkdtempSync(join(memory, "tape-test-"));
  chmodSync(folder, 0o755); // PostgreSQL runs as somebody else
  return folder;
}

async function main(args: string[]): Promise<Tally> {
  const total: Tally = { passed: 0, failed: 0, complaints: [] };
  const count = (ok: boolean) => (ok ? total.passed++ : total.failed++);
  try {
    // The dashboard first, for the tests that look at it or pack it; what reads the sources only goes beside them.
    if (args.length === 0) {
      count(await staticCheck("the dashboard builds", join(root, "tools", "dashboard.ts"), ["--if-stale"]));
    }
    const checks = args.length === 0 ? staticChecks() : [];
    const tests = await runTests(args);
    for (const check of checks) count(await check);
    total.passed += tests.passed;
    total.failed += tests.failed;
    total.complaints.push(...tests.complaints);
  } catch (error) {
    console.error(error);
    total.failed += 1;
    total.complaints.push("the run itself broke");
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
// For every process of this run, and for whoever wants the same samples again.
process.env.TAPE_TEST_DAY = sampleDay;
console.log(` samples of ${sampleDay}: TAPE_TEST_DAY=${sampleDay} takes them again`);
const folder = temporaryFolder();
if (folder !== undefined) {
  process.env.TMPDIR = folder;
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
}
// Hundreds of processes are started from the sources: what one has compiled, the next need not compile again.
const kept = process.env.NODE_COMPILE_CACHE;
const compiled = kept ?? mkdtempSync(join(tmpdir(), "tape-compiled-"));
process.env.NODE_COMPILE_CACHE = compiled;
const { passed, failed, complaints } = await main(process.argv.slice(2));
if (kept === undefined) rmSync(compiled, { recursive: true, force: true });
for (const complaint of complaints) console.error(complaint);
const code = failed > 0 ? 1 : 0;
// The line is written before the exit even where standard output is a slow pipe.
process.stdout.write(`${passed} passed, ${failed} failed\n`, () => process.exit(code));
