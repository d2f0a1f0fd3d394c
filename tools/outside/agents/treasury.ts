import { outcome } from "durable-tape";
import { WorldLedger } from "durable-tape/testing";
import type { Script, ToolSpec } from "./framework.ts";

/** The bank has a ledger of its own: it judges whether something was paid once. */
export const bank = new WorldLedger();

export const search: ToolSpec = {
  name: "search",
  fields: ["invoice"],
  execute: ({ invoice }) => `invoice ${invoice}: 120 EUR to Ada`,
};

export const pay: ToolSpec = {
  name: "pay",
  fields: ["invoice"],
  execute: ({ invoice }) => {
    const caller = { runId: "any", key: `pay ${invoice}`, token: 0n, attempt: 1, businessKey: invoice };
    return bank.apply("pay", caller, { invoice }, () => ({ paid: invoice! }));
  },
  needsApproval: () => true,
};

export const observePay = ({ invoice }: { invoice: string }) => {
  const found = bank.find("pay", invoice);
  return found === undefined ? outcome.absent() : outcome.confirmed(found.result);
};

export const policies = {
  search: { semantics: "read" },
  pay: { businessKey: ({ invoice }: { invoice: string }) => invoice, observe: observePay, approve: "framework" },
} as const;

export const words = ["I look it up. ", "I pay it now. ", "Invoice 7 is paid."];

/** Searches, pays and reports. It asks again, with another id, if the payment did not happen. */
export const treasurer: Script = ({ results }) => {
  const last = results.at(-1)?.output ?? "";
  if (results.length === 0) return { text: words[0]!, calls: [{ id: "s-1", tool: "search", input: { invoice: "7" } }] };
  if (results.length === 1 || last.includes("it did not happen")) {
    return { text: words[1]!, calls: [{ id: `p-${results.length}`, tool: "pay", input: { invoice: "7" } }] };
  }
  return { text: last.includes("denied") ? `Not paid: ${last}` : words[2]! };
};
