import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const programs = ["durable-tape", "tape-reactors"];

/** Runs the program on a Node that reports another version: a preload changes process.versions. */
function runOn(
  version: string,
  args: string[],
  program = "durable-tape",
): { status: number | null; stdout: string; stderr: string } {
  const preload = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });`;
  const flags = ["--import", `data:text/javascript,${encodeURIComponent(preload)}`];
  return spawnSync(process.execPath, [...flags, join(root, "bin", `${program}.js`), ...args], {
    cwd: root,
    encoding: "utf8",
  });
}

it.each(
  ["18.20.8", "22.22.1", "23.11.1", "24.14.0", "25.8.1"].flatMap((version) =>
    programs.map((program) => [version, program] as const),
  ),
)("on Node %s %s prints the version it needs and the command to run", (version, program) => {
  const { status, stdout, stderr } = runOn(version, ["demo", "zombie", "it's me"], program);
  expect(status).toBe(2);
  expect(stdout).toBe("");
  const command = `npx -y -p node\\S*@24 node bin/${program}\\.js demo zombie 'it'\\\\''s me'`;
  expect(stderr).toMatch(
    new RegExp(
      `^Tape needs Node 24\\.14\\.1 or newer, or 22\\.22\\.2 or newer of the line 22; this is v${version}\\. Run it with: ${command}\\n$`,
    ),
  );
});

it.each(["22.22.2", "24.14.1", "25.8.2", "26.0.0"])("starts on Node %s", (version) => {
  const { stderr, status } = runOn(version, ["--help"]);
  expect(stderr).not.toContain("Tape needs Node");
  expect(status).toBe(0);
});
