// `npm run test:shards` runs the store of several shards against real PostgreSQL servers, and prints a last line
// `N passed, N failed`. Arguments (`npm run test:shards -- moves`) choose test files.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runTests } from "../totals.ts";

const here = import.meta.dirname;
let [passed, failed] = [0, 0];
const compiled = mkdtempSync(join(tmpdir(), "tape-compiled-"));
process.env.NODE_COMPILE_CACHE ??= compiled;
try {
  const tests = await runTests(here, ["--config", join(here, "vitest.config.ts"), ...process.argv.slice(2)]);
  ({ passed, failed } = tests);
  for (const problem of tests.problems) console.error(problem);
} catch (error) {
  console.error(error);
  failed = 1;
}
rmSync(compiled, { recursive: true, force: true });
const code = failed > 0 ? 1 : 0;
// Exit only after the line is written, even if standard output is a slow pipe.
process.stdout.write(`${passed} passed, ${failed} failed\n`, () => process.exit(code));
