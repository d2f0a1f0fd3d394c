import { tool } from "@langchain/core/tools";
import { z } from "zod";
import { ScriptedChat } from "../suite/scripted-chat.ts";
import { treasurer } from "../suite/treasurer.ts";
import { transfer } from "./bank.ts";

export const search = tool(async ({ invoice }) => `invoice ${invoice}: 120 EUR to Ada`, {
  name: "search",
  description: "Finds an invoice.",
  schema: z.object({ invoice: z.string() }),
});
export const pay = tool(async ({ invoice }) => transfer(invoice), {
  name: "pay",
  description: "Pays an invoice.",
  schema: z.object({ invoice: z.string() }),
});
export const model = new ScriptedChat({ answer: treasurer });
export const input = { messages: [{ role: "user" as const, content: "pay invoice 7" }] };
