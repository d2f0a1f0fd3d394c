import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

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

/**
 * A fake bank that writes its payments to a file. Replace it with the client of your own bank. It is slow, so that you
 * can kill the agent by hand: for half of `seconds` nothing is paid, for the other half its answer is on the way.
 */
export function bankIn(file: string, seconds: number): Bank {
  const paid = (): Receipt[] =>
    existsSync(file)
      ? readFileSync(file, "utf8")
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as Receipt)
      : [];
  return {
    async wire({ invoice }) {
      console.log(`bank: invoice ${invoice} in ${seconds} s. To kill the agent meanwhile: kill -9 ${process.pid}`);
      await delay(seconds * 500);
      const receipt = { id: `W-${paid().length + 1}`, invoice };
      mkdirSync(dirname(file), { recursive: true });
      appendFileSync(file, `${JSON.stringify(receipt)}\n`);
      console.log(`bank: invoice ${invoice} is paid; the answer is on its way`);
      await delay(seconds * 500);
      return receipt;
    },
    async find(invoice) {
      const receipt = paid().find((one) => one.invoice === invoice);
      console.log(`bank: is invoice ${invoice} paid? ${receipt === undefined ? "no" : "yes"}`);
      return receipt;
    },
  };
}
