import type { SourceFile } from "./files.ts";
import { lineOf, parse, parsedComments, stringsOf, walk } from "./syntax.ts";

/** A stretch of English: a comment, a message, a test title, a paragraph. Line breaks are kept for `lineWithin`. */
export interface Prose {
  readonly line: number;
  readonly text: string;
}

/** Anything shorter is a name or a value. */
const minWords = 3;

/** What a file says in English; text in `backticks` is code and is left out. */
export function proseOf(file: SourceFile): Prose[] {
  return rawProseOf(file).map(({ line, text }) => ({ line, text: text.replace(/`[^`]*`/g, blank) }));
}

export function lineWithin({ line, text }: Prose, index: number): number {
  return line + text.slice(0, index).split("\n").length - 1;
}

function rawProseOf(file: SourceFile): Prose[] {
  if (/\.[mc]?[jt]sx?$/.test(file.path)) return [...commentsOf(file), ...messagesOf(file)];
  if (file.path.endsWith(".md")) return [{ line: 1, text: file.text.replace(/^ *(```|~~~)[\s\S]*?^ *\1/gm, blank) }];
  if (file.path.endsWith(".sql")) return lineComments(file, "--");
  if (/\.ya?ml$/.test(file.path) || file.path === ".ci/run") return lineComments(file, "#");
  return [];
}

const blank = (text: string): string => text.replace(/[^\n]/g, " ");

/** Comments on consecutive lines are one text, so that a phrase is found across a line break. */
function commentsOf(file: SourceFile): Prose[] {
  const found: (Prose & { end: number })[] = [];
  for (const { value, start, end } of parsedComments(file)) {
    const before = found.at(-1);
    const text = value.replace(/\n\s*\* ?/g, "\n");
    if (
      before &&
      file.text.slice(before.end, start).trim() === "" &&
      !/\n\s*\n/.test(file.text.slice(before.end, start))
    ) {
      found[found.length - 1] = { line: before.line, text: `${before.text}\n${text}`, end };
    } else {
      found.push({ line: lineOf(file, { type: "Comment", start, end }), text, end });
    }
  }
  return found;
}

function messagesOf(file: SourceFile): Prose[] {
  const jsx: Prose[] = [];
  walk(parse(file), (node) => {
    if (node.type === "JSXText") jsx.push({ line: lineOf(file, node), text: String(node.value) });
  });
  return [...stringsOf(file), ...jsx].filter(({ text }) => (text.match(/[a-z]+/gi) ?? []).length >= minWords);
}

function lineComments(file: SourceFile, mark: string): Prose[] {
  const lines = file.text.split("\n").map((line) => {
    const at = line.indexOf(mark);
    return at < 0 ? "" : line.slice(at + mark.length);
  });
  return [{ line: 1, text: lines.join("\n") }];
}
