// node examples/trip/main.ts
import { Tape } from "../../src/exports/index.ts";
import { memoryLedger } from "../ledger.ts";
import { until } from "../until.ts";
import { confirmation, tripOn, worldOn } from "./agent.ts";

const world = memoryLedger();
const { trip, runner } = tripOn(worldOn(world, { rejected: ["limousine"] }));
await using app = await Tape.open({ store: "memory:", runner });

const good = await app.start(trip, { id: "t-1", car: "van", within: "30s" });
await until(async () => (await app.gates.list({ run: good.id })).find(({ name }) => name === confirmation.name));
await app.signal(good.id, confirmation, { agreed: true });
console.log(await good.result());

for (const [id, car] of [
  ["t-2", "limousine"],
  ["t-3", "van"],
] as const) {
  const run = await app.start(trip, { id, car, within: "1s" }); // no confirmation comes
  console.log(await run.result());
}
for (const { kind, subject } of world.entries()) console.log("world:", kind, subject);
