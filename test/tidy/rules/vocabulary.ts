import type { SourceFile } from "../files.ts";
import { identifiersOf, lineOf, parse, walk } from "../syntax.ts";
import { bareSql } from "./sql.ts";

const emptyWords = new Set(["manager", "managers", "helper", "helpers", "util", "utils", "common", "misc"]);
const advice = "name it after what it does";

/** `leaseManager2_x` -> lease, manager, 2, x */
export function wordsOf(name: string): string[] {
  const spaced = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2");
  return spaced.toLowerCase().match(/[a-z]+|\d+/g) ?? [];
}

export function emptyNames(files: SourceFile[]): string[] {
  const findings: string[] = [];
  for (const file of files) {
    const inPath = wordsOf(file.path.replace(/^src\//, "")).find((word) => emptyWords.has(word));
    if (inPath) findings.push(`${file.path}: "${inPath}" says nothing; ${advice}`);
    const names = file.path.endsWith(".sql") ? sqlNames(file) : identifiersOf(file);
    for (const [name, line] of names) {
      const words = wordsOf(name);
      const empty = words.find((word) => emptyWords.has(word));
      if (empty) findings.push(`${file.path}:${line} ${name}: "${empty}" says nothing; ${advice}`);
      if (words.includes("epoch") && !isStoreEpoch(words, file)) {
        findings.push(
          `${file.path}:${line} ${name}: an owner's period is a term with a token; only the store has an epoch`,
        );
      }
    }
  }
  return findings;
}

/** `storeEpoch` says it itself; a bare `epoch` needs the store's own folder or a text that says whose epoch it is. */
function isStoreEpoch(words: string[], file: SourceFile): boolean {
  if (words[words.indexOf("epoch") - 1] === "store") return true;
  return file.path.startsWith("src/store/") || /\bstore\b.{0,60}\bepoch|store[ _]?epoch/i.test(file.text);
}

const sqlNames = (file: SourceFile): [string, number][] =>
  [...new Set(bareSql(file.text).match(/[a-z_]\w*/gi))].map((name) => [name, 1]);

// Written so that this file does not contain the marks itself.
const laterMark = new RegExp(`\\b(${["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"].join("|")})\\b`);

export function unfinishedMarks(files: SourceFile[]): string[] {
  return files.flatMap((file) =>
    linesMatching(file, laterMark).map(
      ([line, mark]) => `${file.path}:${line} says ${mark}; finish it, or write down why it is right as it is`,
    ),
  );
}

export function typeEscapes(files: SourceFile[]): string[] {
  const findings: string[] = [];
  for (const file of files.filter(({ path }) => path.endsWith(".ts"))) {
    for (const [line, mark] of linesMatching(file, /@ts-(ignore|expect-error|nocheck)/)) {
      findings.push(`${file.path}:${line} has ${mark}; give the value its type, or unknown with a check`);
    }
    walk(parse(file), (node) => {
      if (node.type !== "TSAnyKeyword") return;
      findings.push(`${file.path}:${lineOf(file, node)} says any; use unknown with a check, or a type parameter`);
    });
  }
  return findings;
}

function linesMatching(file: SourceFile, pattern: RegExp): [number, string][] {
  return file.text.split("\n").flatMap((text, index) => {
    const found = pattern.exec(text);
    return found ? [[index + 1, found[0]] as [number, string]] : [];
  });
}
