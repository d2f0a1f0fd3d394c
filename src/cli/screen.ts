/** Words on a terminal, or in a log when there is none: colours and moving bars only where somebody looks. */
export interface Screen {
  line(text?: string): void;
  /** A numbered step of a story. */
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
  const paint = (code: number) => (text: string) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text);
  const dim = paint(2);
  const bold = paint(1);
  let steps = 0;
  let barred = false;
  return {
    line: (text = "") => void out.write(`${text}\n`),
    step(title, detail) {
      out.write(`\n${bold(`${++steps}. ${title}`)}\n`);
      if (detail !== undefined) out.write(`   ${dim(detail)}\n`);
    },
    bar(label, left, whole) {
      if (!out.isTTY) return;
      const width = 30;
      const full = Math.max(0, Math.min(width, Math.round((left / whole) * width)));
      out.write(`\r   ${label} ${"█".repeat(full)}${dim("░".repeat(width - full))} ${(left / 1000).toFixed(1)} s `);
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
