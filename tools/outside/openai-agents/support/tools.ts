import { setTracingDisabled } from "@openai/agents";
import { outcome } from "durable-tape";
import { tool } from "durable-tape/openai-agents";
import { z } from "zod";

setTracingDisabled(true); // its exporter would call OpenAI

const paid = new Map<string, { receipt: string }>();

export const search = tool({
  name: "search",
  description: "Finds an invoice",
  parameters: z.object({ invoice: z.string() }),
  execute: ({ invoice }) => `invoice ${invoice}: 250 EUR to Ada`,
});

export const pay = tool({
  name: "pay",
  description: "Pays an invoice",
  parameters: z.object({ invoice: z.string(), amount: z.number() }),
  needsApproval: async (_context, { amount }) => amount > 1_000,
  execute: ({ invoice }) => {
    const receipt = { receipt: `r-${invoice}` };
    paid.set(invoice, receipt);
    return receipt;
  },
});

export const observePay = ({ invoice }: { invoice: string }) => {
  const found = paid.get(invoice);
  return found === undefined ? outcome.absent() : outcome.confirmed(found);
};
