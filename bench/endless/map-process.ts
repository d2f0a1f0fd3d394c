// A process of the benchmark of `tape.map`: one run that maps many children, and what they cost it.
import { createRunner, Tape, workflow } from "../../src/exports/index.ts";
import { heapMb } from "./part.ts";

export interface MapMessage {
  readonly say: "mapped";
  readonly ms: number;
  /** Of the heap after a collection, when a tenth and when nine tenths of the children have ended. */
  readonly earlyHeapMb: number;
  readonly lateHeapMb: number;
}

const [url = "", count = "0", concurrency = "1"] = process.argv.slice(2);

const total = Number(count);
const heaps: number[] = [];
let ended = 0;
const leaf = workflow("leaf", async (tape, n: number) => {
  const doubled = await tape.step("double", () => 2 * n);
  ended++;
  if (ended === Math.ceil(total * 0.1) || ended === Math.ceil(total * 0.9)) heaps.push(heapMb());
  return doubled;
});
const all = workflow("all", async (tape, n: number) => {
  const items = Array.from({ length: n }, (_, k) => k);
  const doubled = await tape.map(items, (k) => tape.call(leaf, k), { concurrency: Number(concurrency) });
  return doubled.reduce((sum, value) => sum + value, 0);
});

await using app = await Tape.open({ store: url, runner: createRunner({ workflows: [all, leaf] }), log: "silent" });
const started = performance.now();
const sum = await app.call(all, total);
if (sum !== total * (total - 1)) throw new Error(`the children of the map return ${sum}`);
const message: MapMessage = {
  say: "mapped",
  ms: performance.now() - started,
  earlyHeapMb: heaps[0]!,
  lateHeapMb: heaps.at(-1)!,
};
process.send!(message);
