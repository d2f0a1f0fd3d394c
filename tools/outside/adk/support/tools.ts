import { FunctionTool, LogLevel, setLogLevel } from "@google/adk";
import { outcome } from "durable-tape";
import { z } from "zod";

setLogLevel(LogLevel.ERROR);

const paid = new Map<string, { receipt: string }>();

export const search = new FunctionTool({
  name: "search",
  description: "Finds an invoice",
  parameters: z.object({ invoice: z.string() }),
  execute: ({ invoice }) => `invoice ${invoice}: 250 EUR to Ada`,
});

export const pay = new FunctionTool({
  name: "pay",
  description: "Pays an invoice",
  parameters: z.object({ invoice: z.string(), amount: z.number() }),
  requireConfirmation: ({ amount }) => amount > 1_000,
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
