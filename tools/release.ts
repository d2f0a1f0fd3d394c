// Makes the files of a release: the package, its bill of materials and their checksums. `npm run release -- --repository
// https://host/owner/name` names the repository that it is published from; by default the remote `origin` does.
// Nothing is published: the last line is the command that does it.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { filesBelow } from "../test/package/published.ts";
import { packTarball } from "../test/package/tarball.ts";
import { contentProblems } from "./build/contents.ts";
import { repositoryFields } from "./build/repository.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const git = (...args: string[]): string => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();

const { values } = parseArgs({
  options: { repository: { type: "string" }, into: { type: "string" }, "allow-changes": { type: "boolean" } },
});
if (values["allow-changes"] !== true && git("status", "--porcelain") !== "")
  throw new Error("a release is made from a commit: commit or remove your changes first");
const fields = repositoryFields(values.repository ?? git("remote", "get-url", "origin"));
const tarball = packTarball((manifest) => ({ ...manifest, ...fields }));
try {
  const files = filesBelow(tarball.unpacked).map((path) => ({
    path,
    size: readFileSync(join(tarball.unpacked, path)).length,
  }));
  const problems = contentProblems(files);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  const folder = values.into ?? join(root, "release");
  mkdirSync(folder, { recursive: true });
  const packed = join(folder, basename(tarball.file));
  copyFileSync(tarball.file, packed);
  const bill = packed.replace(/\.tgz$/, ".cdx.json");
  writeFileSync(bill, execFileSync(process.execPath, [join(root, "tools", "sbom.ts")], { cwd: root }));
  const sum = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");
  const sums = [packed, bill].map((path) => `${sum(path)}  ${basename(path)}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
  console.log(`${files.length} files in ${packed}, with its bill of materials and SHA256SUMS.`);
  console.log(`npm publish ${packed}`);
} finally {
  tarball.remove();
}
