import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** A line of a journal that compares no token. */
export interface PlainLine {
  readonly token: string;
  readonly by: string;
  readonly title: string;
}

/**
 * A journal without a fence, for comparison: a file that accepts a line from any process and stores the token without
 * comparing it. This is how locks with a time limit and no fence are used.
 */
export const plainJournal = {
  append: (path: string, line: PlainLine): void => appendFileSync(path, `${JSON.stringify(line)}\n`),
  lines: (path: string): PlainLine[] =>
    existsSync(path)
      ? readFileSync(path, "utf8")
          .split("\n")
          .filter((text) => text !== "")
          .map((text) => JSON.parse(text) as PlainLine)
      : [],
};
