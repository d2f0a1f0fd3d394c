/** Lines around a change that are shown with it. */
const context = 3;

type Edit = { readonly mark: " " | "-" | "+"; readonly line: string };

/** A unified diff of two texts, as `diff -u` prints it; empty if they are equal. */
export function unifiedDiff(path: string, before: string | undefined, after: string | undefined): string {
  if (before === after) return "";
  const edits = editsOf(linesOf(before), linesOf(after));
  const name = (text: string | undefined, side: string): string =>
    text === undefined ? "/dev/null" : `${side}/${path}`;
  const hunks = hunksOf(edits).map(({ from, to }) => hunkText(edits, from, to));
  return [`--- ${name(before, "a")}`, `+++ ${name(after, "b")}`, ...hunks].join("\n");
}

const linesOf = (text: string | undefined): string[] =>
  text === undefined || text === "" ? [] : text.replace(/\n$/, "").split("\n");

/** The shortest list of edits, by the longest common subsequence of lines. */
function editsOf(before: readonly string[], after: readonly string[]): Edit[] {
  const width = after.length + 1;
  const longest = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      longest[i * width + j] =
        before[i] === after[j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  const edits: Edit[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      edits.push({ mark: " ", line: before[i]! });
      [i, j] = [i + 1, j + 1];
    } else if (
      i < before.length &&
      (j === after.length || longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)
    ) {
      edits.push({ mark: "-", line: before[i++]! });
    } else edits.push({ mark: "+", line: after[j++]! });
  }
  return edits;
}

/** Ranges of edits with their context; ranges that touch are one. */
function hunksOf(edits: readonly Edit[]): { readonly from: number; readonly to: number }[] {
  const hunks: { from: number; to: number }[] = [];
  for (const [k, { mark }] of edits.entries()) {
    if (mark === " ") continue;
    const [from, to] = [Math.max(0, k - context), Math.min(edits.length, k + context + 1)];
    const last = hunks.at(-1);
    if (last !== undefined && from <= last.to) last.to = to;
    else hunks.push({ from, to });
  }
  return hunks;
}

function hunkText(edits: readonly Edit[], from: number, to: number): string {
  const count = (part: readonly Edit[], other: "-" | "+"): number => part.filter(({ mark }) => mark !== other).length;
  const [earlier, shown] = [edits.slice(0, from), edits.slice(from, to)];
  const range = (other: "-" | "+"): string => {
    const length = count(shown, other);
    return `${count(earlier, other) + (length === 0 ? 0 : 1)},${length}`;
  };
  return [`@@ -${range("+")} +${range("-")} @@`, ...shown.map(({ mark, line }) => mark + line)].join("\n");
}
