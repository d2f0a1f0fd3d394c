import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestModule, TestSuite, Vitest } from "vitest/node";

const root = fileURLToPath(new URL("..", import.meta.url));

/** What a test command counts. */
export interface TestTotals {
  passed: number;
  failed: number;
  /** One line for each failure that is not a failed test. */
  problems: string[];
}

/** The program behind a package's command, so that the checks do not depend on PATH. */
export function program(packageName: string, command: string): string {
  const manifest = createRequire(import.meta.url).resolve(`${packageName}/package.json`);
  const { bin } = createRequire(import.meta.url)(manifest) as { bin: Record<string, string> };
  return join(dirname(manifest), bin[command]!);
}

/** Runs a Node program from the repository's root, and prints its name with a tick or a cross. */
export async function staticCheck(name: string, file: string, args: string[]): Promise<boolean> {
  const started = performance.now();
  const child = spawn(process.execPath, [file, ...args], { cwd: root, stdio: "inherit" });
  const code = await new Promise<number | null>((resolve, reject) => child.once("error", reject).once("exit", resolve));
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(code === 0 ? ` ✓ ${name} (${seconds} s)` : ` × ${name} (${seconds} s, exit code ${code})`);
  return code === 0;
}

/** Runs vitest in a folder, with the options of its command line. */
export async function runTests(folder: string, args: string[]): Promise<TestTotals> {
  const { parseCLI, startVitest } = await import("vitest/node");
  const { filter, options } = parseCLI(["vitest", ...args]);
  const vitest = await startVitest("test", filter, { ...options, root: folder, run: true, watch: false });
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
