// The same agent in a run of Tape. A new process resumes the run.
import { createRunner, outcome, Tape, workflow } from "durable-tape";
import { durableChat, durableTools, interrupted } from "durable-tape/langgraph";
import { createAgent } from "langchain";
import { payments } from "../../agents/bank.ts";
import { input, model, pay, search } from "./graph.ts";

const kit = durableTools("treasury", [search, pay], {
  search: { semantics: "read" },
  pay: {
    businessKey: (a) => a.invoice,
    observe: (a) => (payments().includes(a.invoice) ? outcome.confirmed("paid") : outcome.absent()),
    timeout: "1s",
    settleDelay: "0s",
  },
});
const agent = createAgent({ model: durableChat(model), tools: kit.tools });
const chat = workflow(
  "chat",
  async (tape, _: string) =>
    (await interrupted(tape, agent, input, { stream: process.env.STREAM === "yes" })).messages.at(-1)!.data.content,
);
await using app = await Tape.open({
  store: process.env.STORE!,
  runner: createRunner({ workflows: [chat], effects: kit.effects }),
  leaseTtl: "2s",
});
const run = await app.start(chat, "pay", { id: "invoice-7" });
console.log(await run.result());
