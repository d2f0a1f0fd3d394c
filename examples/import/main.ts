// node examples/import/main.ts [count]
import { Tape } from "../../src/exports/index.ts";
import { memoryLedger } from "../ledger.ts";
import { importOn, itemsOf, worldOn } from "./agent.ts";

const world = memoryLedger();
const { importAll, runner } = importOn(worldOn(world));
await using app = await Tape.open({ store: "memory:", runner });

const run = await app.start(importAll, { items: itemsOf(Number(process.argv[2] ?? 45)) });
console.log(await run.result());
console.log("world:", world.entries().length, "items");
