import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

export interface Order {
  readonly invoice: string;
  readonly amount: number;
}

export interface Receipt {
  readonly id: string;
  readonly invoice: string;
}

/** A bank that pays twice if it is asked twice: the reason why somebody must look before asking again. */
export interface Bank {
  wire(order: Order): Promise<Receipt>;
  find(invoice: string): Promise<Receipt | undefined>;
}

/** This one writes what it pays into a file. Put the client of your own bank in its place. */
export function bankIn(file: string): Bank {
  const paid = (): Receipt[] =>
    existsSync(file)
      ? readFileSync(file, "utf8")
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as Receipt)
      : [];
  return {
    async wire({ invoice }) {
      const receipt = { id: `W-${paid().length + 1}`, invoice };
      mkdirSync(dirname(file), { recursive: true });
      appendFileSync(file, `${JSON.stringify(receipt)}\n`);
      return receipt;
    },
    async find(invoice) {
      return paid().find((receipt) => receipt.invoice === invoice);
    },
  };
}
