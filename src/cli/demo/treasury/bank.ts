import type { Ledger } from "./ledger.ts";

export interface WireOrder {
  readonly invoice: string;
  readonly account: string;
  readonly amount: number;
}

export interface Receipt {
  readonly id: string;
  readonly invoice: string;
}

/** A bank that does not care about your idempotency key: ask twice and it pays twice. */
export interface Bank {
  wire(order: WireOrder): Promise<Receipt>;
  find(invoice: string): Promise<Receipt | undefined>;
  reverse(receipt: Receipt): Promise<void>;
  reversed(receipt: Receipt): Promise<boolean>;
}

export function bankOn(ledger: Ledger): Bank {
  const acts = (act: string, about: string) =>
    ledger.entries().filter((entry) => entry.act === act && entry.about === about);
  return {
    async wire(order) {
      const receipt = { id: `W-${acts("wire", order.invoice).length + 1}`, invoice: order.invoice };
      ledger.add({ act: "wire", about: order.invoice, detail: { ...order, id: receipt.id } });
      return receipt;
    },
    async find(invoice) {
      const [wire] = acts("wire", invoice);
      return wire === undefined ? undefined : { id: (wire.detail as { id: string }).id, invoice };
    },
    async reverse(receipt) {
      ledger.add({ act: "reverse", about: receipt.invoice, detail: { id: receipt.id } });
    },
    async reversed(receipt) {
      return acts("reverse", receipt.invoice).some(({ detail }) => (detail as { id: string }).id === receipt.id);
    },
  };
}
