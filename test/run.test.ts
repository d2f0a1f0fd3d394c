import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

async function run(filter: string): Promise<{ code: number; lines: string[]; errors: string }> {
  const { VITEST: _, ...env } = process.env;
  const flags = ["test/run.ts", "--config", "test/run-fixtures/vitest.config.ts", filter];
  const child = spawn(process.execPath, flags, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (errors += chunk));
  const [code] = (await once(child, "close")) as [number];
  return { code, lines: output.trimEnd().split("\n"), errors };
}

describe("the test command", () => {
  it.concurrent.each([
    ["green.fixture", 0, "2 passed, 0 failed", ""],
    ["red.fixture", 1, "1 passed, 1 failed", ""],
    ["skipped.fixture", 1, "1 passed, 3 failed", "a skipped test counts as failed"],
    ["only.fixture", 1, "0 passed, 2 failed", "a skipped test counts as failed"],
    ["broken.fixture", 1, "0 passed, 1 failed", "an error outside of a test"],
    ["hook.fixture", 1, "1 passed, 1 failed", "an error outside of a test"],
    ["stray.fixture", 1, "1 passed, 1 failed", "1 unhandled"],
    ["absent.fixture", 1, "0 passed, 1 failed", "no test was found"],
  ])("judges %s with exit code %i and the last line %j", async (filter, code, line, error) => {
    const result = await run(filter);
    expect(result.lines.at(-1)).toBe(line);
    expect(result.lines.filter((text) => /^\d+ passed, \d+ failed$/.test(text))).toHaveLength(1);
    expect(result.errors).toContain(error);
    expect(result.code).toBe(code);
  });
});
