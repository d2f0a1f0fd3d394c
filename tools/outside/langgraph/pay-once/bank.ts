import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** A bank outside of the program: a file that outlives it. Where `KILL` says so, the process dies just after a payment. */
const file = process.env.BANK_FILE!;

export const payments = (): string[] =>
  existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").filter(Boolean) : [];

export function transfer(invoice: string): string {
  appendFileSync(file, `${invoice}\n`);
  if (process.env.KILL === "after payment") process.kill(process.pid, "SIGKILL");
  return `paid ${invoice}`;
}
