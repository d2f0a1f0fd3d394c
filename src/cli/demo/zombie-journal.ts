import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** A line of a journal that compares nothing. */
export interface PlainLine {
  readonly token: string;
  readonly by: string;
  readonly title: string;
}

/**
 * A journal without the fence, for comparison: a file that takes a line from whoever comes, and writes down under which
 * token without looking at it. Locks with a time limit and no fence are used like this.
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
