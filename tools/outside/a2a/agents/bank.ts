import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** A bank outside of the program: a file that outlives it. */
export class Bank {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  get payments(): string[] {
    return existsSync(this.#file) ? readFileSync(this.#file, "utf8").trim().split("\n").filter(Boolean) : [];
  }

  pay(invoice: string): { paid: string } {
    appendFileSync(this.#file, `${invoice}\n`);
    return { paid: invoice };
  }
}
