// LangGraph's own durability: a checkpointer. A new process resumes the thread.
import { openStore } from "durable-tape";
import { TapeSaver } from "durable-tape/langgraph";
import { createAgent } from "langchain";
import { input, model, pay, search } from "./graph.ts";

const store = await openStore(process.env.STORE!);
const agent = createAgent({ model, tools: [search, pay], checkpointer: new TapeSaver({ store, tenant: "default" }) });
const config = { configurable: { thread_id: "invoice-7" }, durability: "sync" as const };
const { next } = await agent.graph.getState(config);
const { messages } = await agent.invoke(next.length > 0 ? null : input, config);
console.log(messages.at(-1)?.content);
await store.close();
