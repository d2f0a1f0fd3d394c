// Whoever starts runs, as a process of its own: with a clock that is set, or killed when the power is cut.
import { seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import type { Started } from "./judge.ts";
import { Load } from "./load.ts";
import { buildProgram } from "./program.ts";
import { persistently } from "./store-calls.ts";

export interface LoadOrders {
  readonly url: string;
  readonly world: string;
  readonly seed: string;
  readonly most: number;
  readonly incarnation: number;
  readonly open: readonly Started[];
}

const { url, world, seed, most, incarnation, open } = JSON.parse(process.argv[2]!) as LoadOrders;
const { runner, flows } = buildProgram({ world, worker: "client" });
const calm = new AbortController();
process.on("message", () => calm.abort());
process.on("disconnect", () => process.exit()); // whoever started it is gone, or we are done
const client = await persistently(() => Tape.open({ store: url, runner, work: false }));
const random = seededRandom(`${seed} load ${incarnation}`);
const load = new Load({ client, flows, random, most, incarnation, note: (entry) => process.send!(entry) });
process.send!("ready");
await load.go(calm.signal, open);
await client.close();
process.disconnect();
