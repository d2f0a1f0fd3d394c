// The loader as a process of its own: its clock can be set, and a power cut can kill it.
import { seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import type { StartedRun } from "./judge.ts";
import { Load } from "./load.ts";
import { buildProgram } from "./program.ts";
import { persistently } from "./store-calls.ts";

export interface LoaderOptions {
  readonly url: string;
  readonly world: string;
  readonly seed: string;
  readonly maxLive: number;
  readonly incarnation: number;
  readonly open: readonly StartedRun[];
}

const { url, world, seed, maxLive, incarnation, open } = JSON.parse(process.argv[2]!) as LoaderOptions;
const { runner, flows } = buildProgram({ world, worker: "client" });
const stop = new AbortController();
process.on("message", () => stop.abort());
process.on("disconnect", () => process.exit()); // the parent has ended, or the work is done
const client = await persistently(() => Tape.open({ store: url, runner, work: false }));
const random = seededRandom(`${seed} load ${incarnation}`);
const load = new Load({ client, flows, random, maxLive, incarnation, note: (entry) => process.send!(entry) });
process.send!("ready");
await load.run(stop.signal, open);
await client.close();
process.disconnect();
