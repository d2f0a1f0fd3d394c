import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { program } from "../../test/totals.ts";
import type { Totals } from "./totals.ts";

/** Runs a Node program in a folder and shows its output. Returns its exit code. */
export function runNode(folder: string, args: readonly string[]): Promise<number | null> {
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });
  return new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
}

/** The adapter's sources and the suite against the real types of the framework: one test. */
export async function typeCheck(folder: string): Promise<Totals> {
  const code = await runNode(folder, [program("typescript", "tsc"), "--noEmit", "-p", folder]);
  console.log(code === 0 ? " ✓ types" : " × types");
  return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 };
}

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly numFailedTestSuites: number;
  readonly testResults: readonly { readonly name: string; readonly assertionResults: readonly { status: string }[] }[];
}

/** The folder's own vitest, because suites import it. Prints what each file counts. */
export async function vitest(folder: string): Promise<Totals> {
  const scratch = mkdtempSync(join(tmpdir(), "tape-outside-report-"));
  const file = join(scratch, "report.json");
  try {
    const program = join(folder, "node_modules", "vitest", "vitest.mjs");
    const flags = ["--reporter=json", `--outputFile=${file}`, "--reporter=default"];
    const code = await runNode(folder, [program, "run", ...flags]);
    const report = JSON.parse(readFileSync(file, "utf8")) as Report;
    for (const { name, assertionResults } of report.testResults) {
      const passed = assertionResults.filter(({ status }) => status === "passed").length;
      console.log(` ${passed} of ${assertionResults.length}  ${name.slice(folder.length + 1)}`);
    }
    const failed = Math.max(report.numFailedTests, report.numFailedTestSuites > 0 || code !== 0 ? 1 : 0);
    return { passed: report.numPassedTests, failed, skipped: report.numPendingTests + report.numTodoTests };
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
