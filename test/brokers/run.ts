// `npm run test:brokers` runs the sinks of brokers against real servers, and prints a last line `N passed, N failed`.
// It finds the servers on the PATH, or unpacks them from this machine's package mirror; one that cannot be had fails.
// Arguments (`npm run test:brokers -- nats`) choose test files.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { program, runTests, staticCheck } from "../totals.ts";
import { installClients } from "./servers/install.ts";
import { findProgram, findPubsubEmulator, programNames } from "./servers/programs.ts";

const here = import.meta.dirname;
let passed = 0;
let failed = 0;
const count = (ok: boolean) => (ok ? passed++ : failed++);

/** The servers come first: a missing one is a failure of its own, with its reason. */
function findServers(): void {
  for (const name of programNames) {
    try {
      const { path, version } = findProgram(name);
      console.log(` ✓ ${name} ${version}: ${path}`);
      count(true);
    } catch (error) {
      console.error(` × ${name} cannot be had: ${(error as Error).message}`);
      count(false);
    }
  }
}

/** Returns the test files to leave out. */
function withoutEmulator(): string[] {
  try {
    console.log(` ✓ Google's Pub/Sub emulator: ${findPubsubEmulator()}`);
    return [];
  } catch (error) {
    console.log(`NOT RUN pubsub.test.ts: ${(error as Error).message}`);
    return ["--exclude", "**/pubsub.test.ts"];
  }
}

const compiled = mkdtempSync(join(tmpdir(), "tape-compiled-"));
process.env.NODE_COMPILE_CACHE ??= compiled;
try {
  installClients();
  findServers();
  const left = withoutEmulator();
  count(await staticCheck("types: tsc -p test/brokers", program("typescript", "tsc"), ["--noEmit", "-p", here]));
  const tests = await runTests(here, ["--config", join(here, "vitest.config.ts"), ...left, ...process.argv.slice(2)]);
  passed += tests.passed;
  failed += tests.failed;
  for (const problem of tests.problems) console.error(problem);
} catch (error) {
  console.error(error);
  failed += 1;
}
rmSync(compiled, { recursive: true, force: true });
const code = failed > 0 ? 1 : 0;
// Exit only after the line is written, even if standard output is a slow pipe.
process.stdout.write(`${passed} passed, ${failed} failed\n`, () => process.exit(code));
