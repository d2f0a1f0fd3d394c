import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** A bank outside of the program: a file that outlives it. */
const file = process.env.BANK_FILE!;

export const payments = (): string[] =>
  existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").filter(Boolean) : [];

/** The process dies at the point that `KILL` names. */
export function point(name: string): void {
  if (process.env.KILL === name) process.kill(process.pid, "SIGKILL");
}

export function transfer(invoice: string): string {
  point("before payment");
  appendFileSync(file, `${invoice}\n`);
  point("after payment");
  return `paid ${invoice}`;
}
