import { createTool } from "@mastra/core/tools";
import { outcome } from "durable-tape";
import { z } from "zod";

const paid = new Map<string, { receipt: string }>();

export const search = createTool({
  id: "search",
  description: "Finds an invoice",
  inputSchema: z.object({ invoice: z.string() }),
  execute: async ({ invoice }) => `invoice ${invoice}: 250 EUR to Ada`,
});

export const pay = createTool({
  id: "pay",
  description: "Pays an invoice",
  inputSchema: z.object({ invoice: z.string(), amount: z.number() }),
  requireApproval: ({ amount }) => amount > 1_000,
  execute: async ({ invoice }) => {
    const receipt = { receipt: `r-${invoice}` };
    paid.set(invoice, receipt);
    return receipt;
  },
});

export const observePay = ({ invoice }: { invoice: string }) => {
  const found = paid.get(invoice);
  return found === undefined ? outcome.absent() : outcome.confirmed(found);
};
