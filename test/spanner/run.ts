// `npm run test:spanner` runs the store on Google's emulator of Spanner, and prints a last line `N passed, N failed`.
// It uses the emulator of SPANNER_EMULATOR_HOST, or starts those of an installed Google Cloud SDK; without one it fails.
// Arguments (`npm run test:spanner -- zombie`) choose test files.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { program, runTests, staticCheck } from "../totals.ts";
import { findEmulator } from "./emulator.ts";

const here = import.meta.dirname;
let passed = 0;
let failed = 0;

/** The client has a package.json of its own, because it weighs 90 MB. */
function installClient(): void {
  const wanted = JSON.parse(readFileSync(join(here, "package.json"), "utf8")).dependencies["@google-cloud/spanner"];
  const file = join(here, "node_modules", "@google-cloud", "spanner", "package.json");
  if (existsSync(file) && JSON.parse(readFileSync(file, "utf8")).version === wanted) return;
  execFileSync("npm", ["ci", "--ignore-scripts"], { cwd: here, stdio: ["ignore", "ignore", "inherit"] });
}

const compiled = mkdtempSync(join(tmpdir(), "tape-compiled-"));
process.env.NODE_COMPILE_CACHE ??= compiled;
try {
  const given = process.env.SPANNER_EMULATOR_HOST;
  console.log(` ✓ Google's emulator of Spanner: ${given ?? findEmulator()}`);
  installClient();
  const ok = await staticCheck("types: tsc -p test/spanner", program("typescript", "tsc"), ["--noEmit", "-p", here]);
  if (ok) passed++;
  else failed++;
  const tests = await runTests(here, ["--config", join(here, "vitest.config.ts"), ...process.argv.slice(2)]);
  passed += tests.passed;
  failed += tests.failed;
  for (const problem of tests.problems) console.error(problem);
} catch (error) {
  console.error(` × ${(error as Error).message}`);
  failed += 1;
}
rmSync(compiled, { recursive: true, force: true });
const code = failed > 0 ? 1 : 0;
// Exit only after the line is written, even if standard output is a slow pipe.
process.stdout.write(`${passed} passed, ${failed} failed\n`, () => process.exit(code));
