import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { contentProblems, type PackedFile } from "../../tools/build/contents.ts";
import { repositoryFields } from "../../tools/build/repository.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Files that `npm publish` would send, without dist if it was not built. npm passes its path to the scripts that it runs;
 * otherwise it is on the PATH.
 */
function packedFiles(): PackedFile[] {
  const npm = process.env.npm_execpath;
  const [program, first] = npm ? [process.execPath, [npm]] : ["npm", []];
  const flags = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const output = execFileSync(program, [...first, ...flags], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [listed] = JSON.parse(output) as { files: PackedFile[] }[];
  return listed!.files;
}

const packed = packedFiles();

it("publishes the program and what it needs, and nothing else", () => {
  expect(contentProblems(packed)).toEqual([]);
});

it("names a stray file, a source, a missing file and too many bytes", () => {
  const files = packed.filter(({ path }) => path !== "LICENSE");
  const stray = ["test/a.js", "docs/images/other.png", ".npmrc", "dist/a.ts"].map((path) => ({ path, size: 1 }));
  expect(contentProblems([...files, ...stray, { path: "dist/large.js", size: 10_000_000 }])).toEqual([
    "test/a.js does not belong into the package",
    "docs/images/other.png does not belong into the package",
    ".npmrc does not belong into the package",
    "dist/a.ts is a source",
    "LICENSE is missing",
    expect.stringMatching(/^the files have \d+ bytes/),
  ]);
});

it.each([
  "https://git.example.org/owner/tape",
  "https://git.example.org/owner/tape.git",
  "git@git.example.org:owner/tape.git",
  "ssh://git@git.example.org/owner/tape",
])("a release from %s names its source", (address) => {
  expect(repositoryFields(address)).toEqual({
    repository: { type: "git", url: "git+https://git.example.org/owner/tape.git" },
    homepage: "https://git.example.org/owner/tape#readme",
    bugs: { url: "https://git.example.org/owner/tape/issues" },
  });
});

it.each(["", "/srv/tape", "file:///tape.git", "http://git.example.org/owner/tape"])(
  "rejects %j as a source",
  (address) => {
    expect(() => repositoryFields(address)).toThrow("is no address of a repository");
  },
);

it("is published for everyone, with the proof of its source", () => {
  const { publishConfig } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { publishConfig: object };
  expect(publishConfig).toEqual({ access: "public", provenance: true });
});
