/** Longest line of a signature before it is broken at its parameters. */
const maxWidth = 96;

const openers = "([{<";
const closers = ")]}>";

/** Splits at a separator outside of all brackets. */
function topLevel(text: string, separator: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const isArrow = text[at] === ">" && text[at - 1] === "=";
    if (openers.includes(text[at]!)) depth++;
    else if (closers.includes(text[at]!) && !isArrow) depth--;
    else if (depth === 0 && text.startsWith(separator, at)) {
      parts.push(text.slice(from, at));
      from = at + separator.length;
    }
  }
  parts.push(text.slice(from));
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}

/** One line as written, without the trailing commas of several lines. */
export const tidy = (text: string): string =>
  text
    .replace(/\(\s+/g, "(")
    .replace(/,?\s+\)/g, ")")
    .replace(/= (?:\| )/g, "= ")
    .replace(/: \| /g, ": ")
    .trim();

/** A signature on one line if it fits, otherwise one parameter, or one case of a union, on each line. */
export function signature(text: string): string {
  const line = tidy(text);
  if (line.length <= maxWidth) return line;
  const equals = /^type [^=]+= /.exec(line);
  if (equals) {
    const cases = topLevel(line.slice(equals[0].length), " | ");
    return cases.length < 2 ? line : `${equals[0].trim()}\n${cases.map((one) => `  | ${one}`).join("\n")}`;
  }
  const open = openOf(line);
  if (open < 0) return line;
  const close = closeOf(line, open);
  const listed = topLevel(line.slice(open + 1, close), ",");
  if (listed.length === 0) return line;
  return `${line.slice(0, open + 1)}\n${listed.map((one) => `  ${one},`).join("\n")}\n${line.slice(close)}`;
}

/** The parenthesis of the parameters: the first one outside of type parameters. */
function openOf(line: string): number {
  let depth = 0;
  for (let at = 0; at < line.length; at++) {
    if (line[at] === "<") depth++;
    else if (line[at] === ">" && line[at - 1] !== "=") depth--;
    else if (line[at] === "(" && depth === 0) return at;
  }
  return -1;
}

function closeOf(line: string, open: number): number {
  let depth = 0;
  for (let at = open; at < line.length; at++) {
    if (line[at] === "(") depth++;
    if (line[at] === ")" && --depth === 0) return at;
  }
  return line.length;
}
