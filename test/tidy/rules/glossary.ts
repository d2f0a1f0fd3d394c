import type { SourceFile } from "../files.ts";
import { lineWithin, proseOf } from "../prose.ts";
import { identifiersOf, lineOf, type Node, nameOf, parse, walk } from "../syntax.ts";
import { wordsOf } from "./vocabulary.ts";

/** What ARCHITECTURE.md says under "Glossary": each table row with a column "instead of" bans what stands there. */
export interface Glossary {
  readonly terms: readonly string[];
  readonly names: readonly BannedName[];
  readonly phrases: readonly BannedPhrase[];
}

interface BannedName {
  readonly word: string;
  /** `most…`: only at the beginning of a longer name, or alone. */
  readonly leading: boolean;
  readonly instead: string;
}

interface BannedPhrase {
  readonly phrase: string;
  readonly pattern: RegExp;
  readonly instead: string;
}

/** Ordinary English around a banned word. */
const fixedPhrases = regexOf(
  [
    "in doubt",
    "told apart",
    "tell(s)?( \\w+)? apart",
    "acts as",
    "look(s|ed|ing)? (up|like)",
    "r[ua]n(s|ning)? out of",
  ].join("|"),
);
/** A status and a fixed word of the API (docs/concepts.md). */
const fixedNames = /in_?doubt/gi;

/** Places where a phrase means something else. */
const allowedIn: Readonly<Record<string, RegExp>> = {
  // The fake world of demos, examples and tests keeps its name.
  "the world":
    /^(testkit|simulation|test|tools|bench|examples|template|README\.md|src\/cli\/(demo|dev)|docs\/(dev|chaos|simulation|planted-bugs|reliability|reference|benchmarks|quickstart)\.md)/,
};

export function readGlossary(page: string): Glossary {
  const section = page.slice(page.indexOf("\n## Glossary\n"));
  const rows = tableRows(section);
  const names: BannedName[] = [];
  const phrases: BannedPhrase[] = [];
  for (const { term, insteadOf } of rows) {
    const instead = term.replaceAll("*", "");
    for (const [, name] of insteadOf.matchAll(/`([^`]+)`/g)) {
      names.push({ word: name!.replace("…", "").toLowerCase(), leading: name!.endsWith("…"), instead });
    }
    for (const [, phrase] of insteadOf.matchAll(/"([^"]+)"/g)) {
      phrases.push({ phrase: phrase!, pattern: patternOf(phrase!), instead });
    }
  }
  const terms = rows.flatMap(({ term }) => [...term.matchAll(/\*\*([^*]+)\*\*/g)].map(([, word]) => word!));
  return { terms, names, phrases };
}

/** The first and the last cell of each row below a header whose last cell is "instead of". */
function tableRows(section: string): { term: string; insteadOf: string }[] {
  const found: { term: string; insteadOf: string }[] = [];
  let inTable = false;
  for (const line of section.split("\n")) {
    if (!line.startsWith("|")) inTable = false;
    else if (/\| instead of \|$/.test(line)) inTable = true;
    else if (inTable && !/^\|\s*-/.test(line)) {
      const cells = line.split("|").map((cell) => cell.trim());
      found.push({ term: cells[1]!, insteadOf: cells.at(-2)! });
    }
  }
  return found;
}

/** "send/sends by/through" means any of the four. */
const patternOf = (phrase: string): RegExp =>
  regexOf(phrase.replace(/\S+/g, (word) => (word.includes("/") ? `(?:${word.replaceAll("/", "|")})` : word)));

/** Whole words, which may stand on two lines. */
function regexOf(words: string): RegExp {
  return new RegExp(`(?<![\\w-])(?:${words.replaceAll(" ", "\\s+")})(?![\\w-])`, "gi");
}

export function bannedPhrases(files: SourceFile[], { phrases }: Glossary): string[] {
  return files.flatMap((file) =>
    proseOf(file).flatMap((prose) => {
      const text = withoutGlossary(file.path, prose.text).replace(fixedPhrases, (found) => "-".repeat(found.length));
      return phrases
        .filter(({ phrase }) => !allowedIn[phrase]?.test(file.path))
        .flatMap(({ pattern, instead }) =>
          [...text.matchAll(pattern)].map((found) => {
            const words = found[0].replace(/\s+/g, " ");
            return `${file.path}:${lineWithin(prose, found.index)} "${words}": write ${instead}`;
          }),
        );
    }),
  );
}

/** The tables themselves name what they ban. */
function withoutGlossary(path: string, text: string): string {
  return path === "ARCHITECTURE.md" ? text.replace(/^\|.*$/gm, (row) => row.replace(/"[^"]*"/g, '""')) : text;
}

export function bannedNames(files: SourceFile[], { names }: Glossary): string[] {
  return files
    .filter(({ path }) => /\.[mc]?[jt]sx?$/.test(path))
    .flatMap((file) =>
      [...identifiersOf(file)].flatMap(([name, line]) => {
        const words = wordsOf(name.replace(fixedNames, ""));
        return names
          .filter(({ word, leading }) => (leading ? words[0] === word : words.includes(word)))
          .map(({ word, instead }) => `${file.path}:${line} ${name}: "${word}" in a name; write ${instead}`);
      }),
    );
}

/** Nouns that end like participles. */
const nouns = new Set(["Finding", "Anything", "Setting", "Heading", "Seed", "Feed"]);

/** A type is named after what it is. `Queued` leaves open what is queued; a type function (`Defined<T>`) says it. */
export function participleTypes(files: SourceFile[]): string[] {
  const declarations = new Set(["TSInterfaceDeclaration", "TSTypeAliasDeclaration", "ClassDeclaration"]);
  return files
    .filter(({ path }) => /\.tsx?$/.test(path))
    .flatMap((file) => {
      const findings: string[] = [];
      walk(parse(file), (node: Node) => {
        if (!declarations.has(node.type) || node.typeParameters) return;
        const name = nameOf(node.id) ?? "";
        if (!/^[A-Z][a-z]+(ing|ed)$/.test(name) || nouns.has(name)) return;
        findings.push(`${file.path}:${lineOf(file, node)} ${name}: a participle names no thing; add its noun`);
      });
      return findings;
    });
}

/** Each term has one row, and the code uses it. */
export function glossaryTerms({ terms }: Glossary, code: string): string[] {
  return [
    ...terms.filter((term, index) => terms.indexOf(term) !== index).map((term) => `${term} has two rows; keep one`),
    ...terms
      .filter((term) => !new RegExp(`\\b${term.replaceAll(" ", "[\\s_-]?")}`, "i").test(code))
      .map((term) => `${term} occurs nowhere in the code; remove its row`),
  ];
}
