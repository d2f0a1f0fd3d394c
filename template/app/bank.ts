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

/** A bank that pays twice if it is called twice, which is why the effect has `observe`. */
export interface Bank {
  wire(order: Order): Promise<Receipt>;
  find(invoice: string): Promise<Receipt | undefined>;
}

/** A fake bank that writes its payments to a file. Replace it with the client of your own bank. */
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
