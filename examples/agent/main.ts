// node examples/agent/main.ts
import { Tape } from "../../src/exports/index.ts";
import { memoryLedger } from "../ledger.ts";
import { agentOn, worldOn } from "./agent.ts";

const world = memoryLedger();
const { agent, runner } = agentOn(worldOn(world));
await using app = await Tape.open({ store: "memory:", runner });

const run = await app.start(agent, { question: "When do you open? Mail Ada." }, { budget: { tokens: 5_000 } });
console.log(await run.result());
for await (const record of app.journal(run.id)) {
  if (record.kind === "decision.made") console.log(record.data.name, record.data.rationale, record.data.usage);
}
for (const { kind, detail } of world.entries()) console.log("world:", kind, detail);
