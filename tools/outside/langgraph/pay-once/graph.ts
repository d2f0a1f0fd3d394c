import { tool } from "@langchain/core/tools";
import { z } from "zod";
import { point, transfer } from "../../agents/bank.ts";
import { ScriptedChat } from "../suite/scripted-chat.ts";
import { treasurer } from "../suite/treasurer.ts";

const find = (invoice: string): string => {
  point("in search");
  return `invoice ${invoice}: 120 EUR to Ada`;
};
export const search = tool(async ({ invoice }) => find(invoice), {
  name: "search",
  description: "Finds an invoice.",
  schema: z.object({ invoice: z.string() }),
});
export const pay = tool(async ({ invoice }) => transfer(invoice), {
  name: "pay",
  description: "Pays an invoice.",
  schema: z.object({ invoice: z.string() }),
});
export const model = new ScriptedChat({
  answer: (messages) => {
    turn = 1 + messages.filter((message) => message.getType() === "ai").length;
    point(`in model call ${turn}`);
    return treasurer(messages);
  },
  onWord: (word) => point(`at word ${word} of turn ${turn}`),
});
let turn = 0;
export const input = { messages: [{ role: "user" as const, content: "pay invoice 7" }] };
