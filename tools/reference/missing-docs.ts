import { entryPoints } from "./entry-points.ts";
import type { Member } from "./members.ts";
import type { Export, Page } from "./model.ts";
import { defaultOf } from "./prose.ts";

/** Entry points whose functions and classes all have an example. Those of frameworks have theirs in their guides. */
const withExamples = entryPoints.filter(({ guide }) => guide === undefined).map(({ specifier }) => specifier);

/** Types whose optional members are choices of a user. */
const isChoice = (name: string): boolean => /(Options|Policy|Timing|Choice)$/.test(name);

/** A value that something else replaces if it is left out. */
const hasDefault = (type: string): boolean => /^(number|boolean|Duration|"|true|false)/.test(type);

/** What the reference lacks, one sentence each. */
export function missingDocs(pages: readonly Page[]): string[] {
  return [...new Set(pages.flatMap((page) => page.exports.flatMap((one) => missingOf(one, page.specifier))))];
}

function missingOf(one: Export, specifier: string): string[] {
  const { name, kind, file, doc, members } = one;
  const isValue = kind === "function" || kind === "class" || kind === "constant";
  const found: string[] = [];
  if (doc.text === "") found.push(`${file}: ${name} has no doc comment`);
  if (isValue && doc.example === undefined && withExamples.includes(specifier)) {
    found.push(`${file}: ${name} has no @example`);
  }
  const all = members.flatMap((member) => [member, ...member.inner]);
  return [...found, ...all.flatMap((member) => missingOfMember(name, member))];
}

function missingOfMember(owner: string, { name, type, optional, doc, place }: Member): string[] {
  const where = `${place}: ${owner}.${name}`;
  if (doc.text === "") return [`${where} has no doc comment`];
  if (optional && isChoice(owner) && hasDefault(type) && defaultOf(doc) === undefined) {
    return [`${where} does not state its default: end its comment with "Default 5 s." or "Default: none."`];
  }
  return [];
}
