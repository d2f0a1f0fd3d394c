// node examples/order/main.ts
import { isTapeError, Tape } from "../../src/exports/index.ts";
import { memoryLedger } from "../ledger.ts";
import { orderOn, worldOn } from "./agent.ts";

const world = memoryLedger();
const { order, runner } = orderOn(worldOn(world, { rejected: ["piano"] }));
await using app = await Tape.open({ store: "memory:", runner });

const good = await app.start(order, { id: "o-1", item: "book", price: 20 });
console.log(await good.result());

const bad = await app.start(order, { id: "o-2", item: "piano", price: 9_000 });
await bad.result().catch((error: unknown) => console.log(isTapeError(error) ? error.message : error));
for (const { kind, subject } of world.entries()) console.log("world:", kind, subject);
