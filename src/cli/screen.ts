import { systemRandom } from "../base/random.ts";
import { visible } from "../base/text.ts";

/** Output to a terminal or a log. Colours and moving bars appear only on a terminal. */
export interface Screen {
  /** Prints one line. Control characters in stored or untrusted text are escaped, so it stays one line. */
  line(text?: string): void;
  /** Prints several lines of the program's own text: help, JSON. */
  block(text: string): void;
  /** Prints the heading of a demo's next numbered step. */
  step(title: string, detail?: string): void;
  bar(label: string, left: number, whole: number): void;
  barDone(): void;
  good(text: string): string;
  bad(text: string): string;
  dim(text: string): string;
  bold(text: string): string;
}

export function screenOn(out: NodeJS.WriteStream): Screen {
  const colours = out.isTTY === true && process.env.NO_COLOR === undefined;
  // The program's colours are unguessable marks until the line is escaped, so stored text cannot contain them.
  const mark = `\ufdd0${systemRandom.uuid(0)}`;
  const paint = (code: number) => (text: string) => (colours ? `${mark}${code}m${text}${mark}0m` : text);
  const marks = new RegExp(`${mark}(\\d+)m`, "g");
  const safe = (text: string): string => {
    let done = "";
    let from = 0;
    for (const found of text.matchAll(marks)) {
      done += `${visible(text.slice(from, found.index))}\u001b[${found[1]}m`;
      from = found.index + found[0].length;
    }
    return done + visible(text.slice(from));
  };
  const dim = paint(2);
  const bold = paint(1);
  let steps = 0;
  let barred = false;
  return {
    line(text = "") {
      out.write(`${safe(text)}\n`);
    },
    block(text) {
      for (const line of text.split("\n")) this.line(line);
    },
    step(title, detail) {
      this.line();
      this.line(bold(`${++steps}. ${title}`));
      if (detail !== undefined) this.line(`   ${dim(detail)}`);
    },
    bar(label, left, whole) {
      if (!out.isTTY) return;
      const width = 30;
      const full = Math.max(0, Math.min(width, Math.round((left / whole) * width)));
      const drawn = `${"█".repeat(full)}${dim("░".repeat(width - full))}`;
      out.write(`\r${safe(`   ${label} ${drawn} ${(left / 1000).toFixed(1)} s `)}`);
      barred = true;
    },
    barDone() {
      if (barred) out.write("\n");
      barred = false;
    },
    good: paint(32),
    bad: paint(31),
    dim,
    bold,
  };
}

/** Prints an error: what is wrong, then what to do. */
export function complain(out: { write(text: string): unknown }, ...lines: readonly string[]): void {
  for (const line of lines) out.write(`${visible(line)}\n`);
}
