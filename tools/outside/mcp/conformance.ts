import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Totals } from "../totals.ts";

const folder = import.meta.dirname;
const program = join(folder, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js");

/**
 * Runs the official suite against a server. A scenario that fails as its list expects is counted as skipped. One that
 * fails otherwise has failed, and so has one that passes although it is listed.
 */
export async function conformance(url: string, list: string): Promise<Totals> {
  const file = join(folder, list);
  const expected = new Set([...readFileSync(file, "utf8").matchAll(/^ {2}- (\S+)$/gm)].map(([, name]) => name!));
  const child = spawn(process.execPath, [program, "server", "--url", url, "--expected-failures", file], {
    ...{ cwd: folder, stdio: ["ignore", "pipe", "inherit"] },
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  const results = [...output.matchAll(/^[✓✗] (\S+): (\d+) passed, (\d+) failed$/gm)].map(([, name, ok, failed]) => ({
    ...{ name: name!, isOk: failed === "0" && ok !== "0" },
  }));
  const passed = results.filter(({ name, isOk }) => isOk && !expected.has(name)).length;
  const skipped = results.filter(({ name, isOk }) => !isOk && expected.has(name)).length;
  const wrong = results.filter(({ name, isOk }) => isOk === expected.has(name));
  for (const { name, isOk } of wrong) console.log(` × ${name} ${isOk ? "passes although it is listed" : "failed"}`);
  // The suite judges by the same list: if it disagrees, or ran nothing, this file has misread it.
  const isBroken = results.length < 30 || (code === 0) !== (wrong.length === 0);
  if (isBroken) console.log(output);
  console.log(` ${passed} of ${results.length} scenarios, ${skipped} fail as expected  ${list}`);
  return { passed, failed: isBroken ? Math.max(1, wrong.length) : wrong.length, skipped };
}
