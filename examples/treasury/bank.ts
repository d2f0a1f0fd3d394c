import type { Ledger } from "../ledger.ts";

export interface WireOrder {
  readonly invoice: string;
  readonly account: string;
  readonly amount: number;
}

export interface Receipt {
  readonly id: string;
  readonly invoice: string;
}

/** A bank that ignores idempotency keys: if it is called twice, it pays twice. */
export interface Bank {
  wire(order: WireOrder): Promise<Receipt>;
  find(invoice: string): Promise<Receipt | undefined>;
  reverse(receipt: Receipt): Promise<void>;
  reversed(receipt: Receipt): Promise<boolean>;
}

export function bankOn(ledger: Ledger): Bank {
  const entriesOf = (kind: string, subject: string) =>
    ledger.entries().filter((entry) => entry.kind === kind && entry.subject === subject);
  return {
    async wire(order) {
      const receipt = { id: `W-${entriesOf("wire", order.invoice).length + 1}`, invoice: order.invoice };
      ledger.add({ kind: "wire", subject: order.invoice, detail: { ...order, id: receipt.id } });
      return receipt;
    },
    async find(invoice) {
      const [wire] = entriesOf("wire", invoice);
      return wire === undefined ? undefined : { id: (wire.detail as { id: string }).id, invoice };
    },
    async reverse(receipt) {
      ledger.add({ kind: "reverse", subject: receipt.invoice, detail: { id: receipt.id } });
    },
    async reversed(receipt) {
      return entriesOf("reverse", receipt.invoice).some(({ detail }) => (detail as { id: string }).id === receipt.id);
    },
  };
}
