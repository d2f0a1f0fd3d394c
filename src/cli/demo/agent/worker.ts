import { durableModel } from "../../../ai/model.ts";
import { durableTools, type ToolLike } from "../../../ai/tools.ts";
import { Tape } from "../../../host/tape.ts";
import { loadPeer } from "../../../model/peer.ts";
import { outcome } from "../../../sdk/outcomes.ts";
import { createRunner, workflow } from "../../../sdk/workflow.ts";
import { fileLedger, findEntry } from "../treasury/ledger.ts";
import { scriptedModel } from "./model.ts";

/** Messages from a worker of the agent demo to its director. */
export type FromAgentWorker =
  | { readonly event: "called"; readonly turn: number }
  | { readonly event: "mid-sentence" | "wired" | "observed" }
  | { readonly event: "ended"; readonly outcome: unknown };

/** Where the worker stops, for its director to kill it there. */
export type AgentPart = "mid-sentence" | "after the wire" | "to the end";

/** The parts of the AI SDK that the demo uses. */
interface AiSdk {
  readonly ToolLoopAgent: new (
    settings: object,
  ) => {
    stream(options: { prompt: string }): Promise<{ readonly textStream: AsyncIterable<string> }>;
  };
  tool(definition: object): ToolLike;
  jsonSchema(schema: object): unknown;
}

const [url = "", ledgerPath = "", run = "", ttlMs = "", part = ""] = process.argv.slice(2);
const send = (message: FromAgentWorker): void => void process.send?.(message);
const forever = (): Promise<never> => new Promise(() => {});
const world = fileLedger(ledgerPath);

const { ToolLoopAgent, tool, jsonSchema } = await loadPeer<AiSdk>("ai", "demo agent");

const schema = (properties: object) => jsonSchema({ type: "object", properties, required: Object.keys(properties) });
interface Wire {
  readonly invoice: string;
  readonly amount: number;
}
const tools = {
  search: tool({
    description: "Finds an invoice",
    inputSchema: schema({ query: { type: "string" } }),
    execute: async ({ query }: { query: string }) => ({ invoice: query, amount: 250_000, due: "today" }),
  }),
  wire: tool({
    description: "Wires money. The bank pays twice if it is called twice",
    inputSchema: schema({ invoice: { type: "string" }, amount: { type: "number" } }),
    execute: async ({ invoice, amount }: Wire) => {
      world.add({ kind: "wire", subject: invoice, detail: amount });
      send({ event: "wired" });
      if (part === "after the wire") await forever(); // the bank's response is lost with the process
      return { receipt: `wire-${invoice}` };
    },
  }),
};
const kit = durableTools("bank", tools, {
  search: { semantics: "read" },
  wire: {
    businessKey: (input) => (input as Wire).invoice,
    observe: (input) => {
      const found = findEntry(world, "wire", (input as Wire).invoice);
      send({ event: "observed" });
      return found === undefined ? outcome.absent() : outcome.confirmed({ receipt: `wire-${found.subject}` });
    },
    timeout: "10s",
    settleDelay: "20s",
  },
});

/** The provider's own log of calls, outside Tape. */
const onCall = (turn: number): void => {
  world.add({ kind: "model", subject: `turn ${turn}` });
  send({ event: "called", turn });
};
const model = scriptedModel(onCall, async ({ turn, words }) => {
  if (part !== "mid-sentence" || turn !== 2 || words < 5) return;
  send({ event: "mid-sentence" });
  await forever();
});
const agent = new ToolLoopAgent({ model: durableModel(model, { agent: "treasurer" }), tools: kit.tools });
const chat = workflow("chat", async (_tape, prompt: string) => {
  const { textStream } = await agent.stream({ prompt });
  let text = "";
  for await (const word of textStream) text += word;
  return text;
});

const runner = createRunner({ workflows: [chat], effects: kit.effects });
const app = await Tape.open({ store: url, runner, leaseTtl: Number(ttlMs), log: "silent" });
const handle = await app.start(chat, "Pay invoice 2026-117", { id: run, budget: { tokens: 20_000 } });
const text = await handle.result();
await app.close();
send({ event: "ended", outcome: text });
process.disconnect();
