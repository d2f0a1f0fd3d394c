import { ToolLoopAgent, tool } from "ai";
import { ToolLoopAgent as ToolLoopAgent6, tool as tool6 } from "ai-6";
import { z } from "zod";
import { type DurableModelOptions, durableModel } from "../../src/ai/model.ts";
import { durableTools } from "../../src/ai/tools.ts";
import { currentSite } from "../../src/sdk/current.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, type Runner, type Workflow, workflow } from "../../src/sdk/workflow.ts";
import { WorldLedger } from "../../testkit/kit/world.ts";
import { type Script, ScriptedLanguageModel } from "./scripted-model.ts";

/** The versions of the AI SDK that are tested, with the specification of their models. */
export const versions = [
  { sdk: 7, spec: "v4" },
  { sdk: 6, spec: "v3" },
] as const;
export type Version = (typeof versions)[number];

/** Searches, pays, and reports: three model calls, a read and a payment. */
export const treasurer: Script = (turn) => {
  if (turn === 1) return { text: "I look it up. ", calls: [{ id: "call-1", tool: "search", input: { query: "117" } }] };
  if (turn === 2) {
    const input = { invoice: "2026-117", amount: 250 };
    return { reasoning: "it is due", text: "I pay it now. ", calls: [{ id: "call-2", tool: "pay", input }] };
  }
  return { text: "Paid 250 for invoice 2026-117." };
};

export interface Treasury {
  readonly bank: WorldLedger;
  readonly model: ScriptedLanguageModel;
  readonly runner: Runner;
  readonly chat: Workflow<string, string>;
}

/** A stock agent of the AI SDK with a durable model and durable tools. */
export function treasury(
  { sdk, spec }: Version,
  mode: "generate" | "stream",
  options: DurableModelOptions & { readonly script?: Script; readonly approve?: boolean } = {},
): Treasury {
  const { script = treasurer, approve = false, ...modelOptions } = options;
  const bank = new WorldLedger();
  const model = new ScriptedLanguageModel(spec, script);
  const search = {
    description: "Finds an invoice",
    inputSchema: z.object({ query: z.string() }),
    execute: ({ query }: { query: string }) => ({ found: `invoice 2026-${query}`, at: new Date(0) }),
  };
  const pay = {
    description: "Pays an invoice",
    inputSchema: z.object({ invoice: z.string(), amount: z.number() }),
    execute: (input: { invoice: string; amount: number }) =>
      bank.apply("pay", callerOf(input.invoice), input, () => ({ receipt: "r1" })),
  };
  const policies = {
    search: { semantics: "read" },
    pay: {
      businessKey: (a: { invoice: string }) => a.invoice,
      observe: (a: { invoice: string }) => {
        const found = bank.find("pay", a.invoice);
        return found ? outcome.confirmed(found.result) : outcome.absent();
      },
      approve,
    },
  } as const;
  const tools = sdk === 7 ? { search: tool(search), pay: tool(pay) } : { search: tool6(search), pay: tool6(pay) };
  const kit = durableTools("treasury", tools as { search: typeof search; pay: typeof pay }, policies);
  const settings = { model: durableModel(model, { agent: "treasurer", ...modelOptions }), tools: kit.tools };
  const agent = sdk === 7 ? new ToolLoopAgent(settings as never) : new ToolLoopAgent6(settings as never);
  const chat = workflow("chat", async (_tape, prompt: string): Promise<string> => {
    if (mode === "generate") return (await agent.generate({ prompt })).text;
    const result = await agent.stream({ prompt });
    let text = "";
    for await (const part of result.textStream) text += part;
    return text;
  });
  return { bank, model, chat, runner: createRunner({ workflows: [chat], effects: kit.effects }) };
}

/** The ledger judges by the run and the invoice: a tool of a framework does not know the key of its effect. */
function callerOf(invoice: string) {
  const runId = currentSite()?.context.runId ?? "none";
  return { runId, key: `${runId} ${invoice}`, token: 0n, attempt: 1, businessKey: invoice };
}
