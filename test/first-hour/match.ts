/**
 * Compares what a terminal shows with a page. `…` within a line stands for any text, a line of `…` for any number of
 * lines. Blank lines and spaces at the end of a line do not count.
 */
export function shows(output: string, page: string): boolean {
  return matches(linesOf(output), linesOf(page));
}

/** The same for a terminal whose program keeps running: other lines may come before, between and after. */
export function showsAmong(output: string, page: string): boolean {
  const lines = linesOf(output);
  let from = 0;
  for (const expected of linesOf(page).filter((line) => line !== "…")) {
    const at = lines.findIndex((line, k) => k >= from && patternOf(expected).test(line));
    if (at < 0) return false;
    from = at + 1;
  }
  return true;
}

const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "" && !asides.some((aside) => aside.test(line)));

/** What does not belong to a guide: how a shell announces that it notices a kill, and Node 22 its experiments. */
const asides = [
  /^bash: line \d+:\s+\d+ (Killed|Terminated)\b/,
  /^\(node:\d+\) ExperimentalWarning: /,
  /^\(Use `node --trace-warnings /,
];

function matches(lines: readonly string[], expected: readonly string[]): boolean {
  const [first, ...rest] = expected;
  if (first === undefined) return lines.length === 0;
  if (first === "…") {
    for (let k = 0; k <= lines.length; k++) if (matches(lines.slice(k), rest)) return true;
    return false;
  }
  return lines.length > 0 && patternOf(first).test(lines[0]!) && matches(lines.slice(1), rest);
}

const patternOf = (line: string): RegExp =>
  new RegExp(
    `^${line
      .split("…")
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join(".*")}$`,
  );
