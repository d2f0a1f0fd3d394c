import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readFiles, repositoryPaths, root } from "./files.ts";
import { documentation } from "./rules/documented.ts";
import { subjectNames } from "./rules/files.ts";
import { bannedNames, bannedPhrases, participleTypes, readGlossary } from "./rules/glossary.ts";

/**
 * Prints what the rules for names and prose find in the given files and folders, and public names without a doc comment:
 * `npm run words -- src/lease docs/leases.md`.
 */
const places = process.argv.slice(2).map((place) => place.replace(/^\.\/|\/$/g, ""));
for (const place of places) if (!existsSync(join(root, place))) throw new Error(`${place} does not exist`);

const glossary = readGlossary(readFileSync(join(root, "ARCHITECTURE.md"), "utf8"));
const isGiven = (path: string) => places.some((place) => path === place || path.startsWith(`${place}/`));
const paths = repositoryPaths();
const files = readFiles(paths.filter(isGiven));
const published = readFiles(paths.filter((path) => /^(src|testkit)\/.*\.ts$/.test(path)));
const undocumented = ["src/exports/index.ts", "testkit/index.ts"]
  .flatMap((index) => documentation(index, published).undocumented)
  .filter(({ path }) => isGiven(path))
  .map(({ path, line, name }) => `${path}:${line} ${name} is public and has no doc comment`);
const findings = [
  ...bannedPhrases(files, glossary),
  ...bannedNames(files, glossary),
  ...participleTypes(files),
  ...subjectNames(files),
  ...undocumented,
];
for (const finding of findings.sort((a, b) => a.localeCompare(b, "en", { numeric: true }))) console.log(finding);
console.log(`${findings.length} findings in ${files.length} files`);
if (findings.length > 0) process.exitCode = 1;
