// An agent of Mastra in a run. The process dies where `KILL` says; a new one resumes the run.
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { Agent } from "@mastra/core/agent";
import { Memory } from "@mastra/memory";
import { createRunner, outcome, Tape, workflow } from "durable-tape";
import { durableAgent, durableModel, durableTools, TapeStorage, toolApproval } from "durable-tape/mastra";
import { payments, point, transfer } from "../../agents/bank.ts";
import { treasurer } from "../../agents/treasury.ts";
import { toolOf } from "../suite/framework.ts";
import { scriptedModel } from "../suite/scripted-model.ts";

let calls = 0;
const model = scriptedModel(({ prompt, results }) => {
  calls = results.length + 1;
  point(`in model call ${calls}`);
  return treasurer({ prompt, results });
});
const { doStream } = model;
model.doStream = async (options) => {
  const { stream } = await doStream.call(model, options);
  let word = 0;
  const counted = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
    transform: (part, to) => {
      if (part.type === "text-delta") point(`at word ${++word} of turn ${calls}`);
      to.enqueue(part);
    },
  });
  return { stream: stream.pipeThrough(counted) };
};

const search = toolOf({
  name: "search",
  fields: ["invoice"],
  execute: ({ invoice }) => {
    point("in search");
    return `invoice ${invoice}: 120 EUR to Ada`;
  },
});
const pay = toolOf({
  name: "pay",
  fields: ["invoice"],
  execute: ({ invoice }) => transfer(invoice!),
  needsApproval: () => true,
});
const kit = durableTools(
  "treasury",
  { search, pay },
  {
    search: { semantics: "read" },
    pay: {
      businessKey: (a) => a.invoice!,
      observe: (a) => (payments().includes(a.invoice!) ? outcome.confirmed("paid") : outcome.absent()),
      timeout: "1s",
      settleDelay: "0s",
    },
  },
);
const agent = durableAgent(
  new Agent({
    ...{ id: "treasurer", name: "Treasurer", instructions: "Pay what is due.", tools: kit.tools },
    model: durableModel(model, { strict: true }),
    memory: new Memory({ storage: new TapeStorage() }),
  }),
);
const options = { memory: { thread: "chat", resource: "ada" } };
const chat = workflow("chat", async (_tape, text: string) => {
  if (process.env.STREAM !== "yes") return (await agent.generate(text, options)).steps.at(-1)?.text;
  const result = await agent.stream(text, options);
  await result.consumeStream();
  return (await result.steps).at(-1)?.text;
});

await using app = await Tape.open({
  store: process.env.STORE!,
  runner: createRunner({ workflows: [chat], effects: kit.effects }),
  leaseTtl: "2s",
  log: "silent",
});
const run = await app.start(chat, "pay invoice 7", { id: "invoice-7" });
const approving = setInterval(async () => {
  const [open] = await app.gates.list({ run: run.id });
  if (open === undefined) return;
  point("at the gate");
  await app.signal(run.id, toolApproval, { approved: true }, { binds: open.binds! });
}, 50);
console.log(await run.result());
clearInterval(approving);
