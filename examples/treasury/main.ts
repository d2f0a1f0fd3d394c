// node examples/treasury/main.ts [day]
import { mkdirSync } from "node:fs";
import { Tape } from "../../src/exports/index.ts";
import { fileLedger } from "../ledger.ts";
import { until } from "../until.ts";
import { cfo, treasuryOn, worldOn } from "./agent.ts";

mkdirSync(".tape", { recursive: true });
const world = fileLedger(".tape/treasury-world.jsonl");
const { treasury, runner } = treasuryOn(worldOn(world));

await using app = await Tape.open({ store: "sqlite:./.tape/treasury.db", runner });
const day = process.argv[2] ?? "2026-11-15";
const run = await app.start(treasury, { day }, { id: `treasury-${day}` });

if ((await run.status()) !== "COMPLETED") {
  const open = await until(async () => (await app.gates.list({ run: run.id }))[0]);
  console.log("waiting for the CFO:", open.payload);
  await app.signal(run.id, cfo, { approved: true }, { binds: open.binds, key: "cfo" });
}
console.log(await run.result());
for (const { kind, subject } of world.entries()) console.log("world:", kind, subject);
