import { tool } from "ai";
import { z } from "zod";

const paid = new Map<string, { receipt: string }>();

export const bank = { find: async (invoice: string) => paid.get(invoice) };

export const search = tool({
  description: "Finds an invoice",
  inputSchema: z.object({ query: z.string() }),
  execute: async ({ query }) => `invoice ${query}`,
});

export const pay = tool({
  description: "Pays an invoice",
  inputSchema: z.object({ invoice: z.string(), amount: z.number() }),
  execute: async ({ invoice }) => {
    const receipt = { receipt: `r-${invoice}` };
    paid.set(invoice, receipt);
    return receipt;
  },
});
