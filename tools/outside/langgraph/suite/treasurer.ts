import type { BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { outcome } from "durable-tape";
import { WorldLedger } from "durable-tape/testing";
import { z } from "zod";
import type { Answer } from "./scripted-chat.ts";

/** The bank, with a ledger of its own: whether something was paid once is judged there. */
export const bank = new WorldLedger();
const caller = { runId: "any", key: "", token: 0n, attempt: 1, businessKey: undefined };

export const search = tool(async ({ invoice }) => `invoice ${invoice}: 120 EUR to Ada`, {
  name: "search",
  description: "Finds an invoice.",
  schema: z.object({ invoice: z.string() }),
});

/** Every call pays: the bank does not recognise repetitions. */
export const transfer = (invoice: string) =>
  bank.apply("pay", { ...caller, key: `pay ${invoice}`, businessKey: invoice }, { invoice }, () => ({ paid: invoice }));

export const pay = tool(async ({ invoice }) => transfer(invoice), {
  name: "pay",
  description: "Pays an invoice.",
  schema: z.object({ invoice: z.string() }),
});

export function observed({ invoice }: { invoice: string }) {
  const found = bank.find("pay", invoice);
  return found === undefined ? outcome.absent() : outcome.confirmed(found.result);
}

export const policies = {
  search: { semantics: "read" as const },
  pay: {
    businessKey: (input: { invoice: string }) => input.invoice,
    observe: observed,
  },
};

/** Searches, pays, and reports; asks again with a new id if the payment did not happen. */
export function treasurer(messages: readonly BaseMessage[]): Answer {
  const results = messages.filter((message) => message.getType() === "tool");
  const last = results.at(-1) as (BaseMessage & { status?: string }) | undefined;
  if (results.length === 0)
    return { text: "I will search. ", calls: [{ id: "s-1", name: "search", args: { invoice: "7" } }] };
  if (results.length === 1 || last?.status === "error")
    return { text: "Now I pay it. ", calls: [{ id: `p-${results.length}`, name: "pay", args: { invoice: "7" } }] };
  return { text: "Invoice 7 is paid: all done" };
}
