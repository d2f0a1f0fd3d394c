import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Files that `npm publish` would send. npm passes its path to the scripts that it runs; otherwise it is on the PATH. */
function packedPaths(): string[] {
  const npm = process.env.npm_execpath;
  const [program, first] = npm ? [process.execPath, [npm]] : ["npm", []];
  const flags = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const output = execFileSync(program, [...first, ...flags], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [packed] = JSON.parse(output) as { files: { path: string }[] }[];
  return packed!.files.map(({ path }) => path);
}

it("publishes the program and what it needs, and nothing else", () => {
  const paths = packedPaths();
  expect(paths).toContain("bin/durable-tape.js");
  expect(paths).toContain("package.json");
  // The template is copied, never loaded from here.
  const sources = paths.filter((path) => /^(?!template\/).*(?<!\.d)\.ts$/.test(path));
  expect(sources).toEqual([]);
  const unexpected = paths.filter(
    (path) => !/^(bin\/|dist\/|template\/|package\.json$|(README|CHANGELOG|SECURITY)\.md$|LICENSE$)/.test(path),
  );
  expect(unexpected).toEqual([]);
  expect(paths.filter((path) => /^(?!template\/)(.*\/)?(test|tools|bench)\//.test(path))).toEqual([]);
});
