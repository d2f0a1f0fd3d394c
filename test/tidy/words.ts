import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readFiles, repositoryPaths, root } from "./files.ts";
import { bannedNames, bannedPhrases, participleTypes, readGlossary } from "./rules/glossary.ts";

/** Prints what the vocabulary rules find in the given files and folders: `npm run words -- src/lease docs/leases.md`. */
const places = process.argv.slice(2).map((place) => place.replace(/^\.\/|\/$/g, ""));
for (const place of places) if (!existsSync(join(root, place))) throw new Error(`${place} does not exist`);

const glossary = readGlossary(readFileSync(join(root, "ARCHITECTURE.md"), "utf8"));
const files = readFiles(
  repositoryPaths().filter((path) => places.some((place) => path === place || path.startsWith(`${place}/`))),
);
const findings = [...bannedPhrases(files, glossary), ...bannedNames(files, glossary), ...participleTypes(files)];
for (const finding of findings.sort((a, b) => a.localeCompare(b, "en", { numeric: true }))) console.log(finding);
console.log(`${findings.length} findings in ${files.length} files`);
if (findings.length > 0) process.exitCode = 1;
