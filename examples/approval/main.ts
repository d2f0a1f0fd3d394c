// node examples/approval/main.ts
import { Tape } from "../../src/exports/index.ts";
import { memoryLedger } from "../ledger.ts";
import { until } from "../until.ts";
import { approvalOn, lead, worldOn } from "./agent.ts";

const world = memoryLedger();
const { expense, runner } = approvalOn(worldOn(world));
await using app = await Tape.open({ store: "memory:", runner });

const run = await app.start(expense, { id: "e-1", who: "Ada", amount: 120 });
const open = await until(async () => (await app.gates.list({ run: run.id }))[0]);
console.log(`waiting for ${open.name}:`, open.payload);
await app.signal(run.id, lead, { approved: true, by: "Grace" }, { binds: open.binds });
console.log(await run.result());
for (const { kind, subject } of world.entries()) console.log("world:", kind, subject);
