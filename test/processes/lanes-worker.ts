import { systemClock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";

/** Runs with two branches, each with its own I/O between decisions of the same name. */
const [url = "", ttlMs = "", start = "", seed = ""] = process.argv.slice(2);
const random = seededRandom(`lanes ${seed}`);
const io = (): Promise<void> => systemClock.sleep(random.int(25));
async function branch(tape: TapeContext, name: string): Promise<string[]> {
  const picked: string[] = [];
  for (let turn = 0; turn < 12; turn++) {
    await io();
    picked.push(await tape.decide("pick", async () => io().then(() => `${name} ${turn}`)));
  }
  return picked;
}
const both = workflow("both", (tape, _: null) =>
  Promise.all(["a", "b"].map((name) => tape.lane(name, () => branch(tape, name)))),
);
const app = await Tape.open({
  store: url,
  runner: createRunner({ workflows: [both] }),
  leaseTtl: Number(ttlMs),
  log: "silent",
});
await Promise.all(Array.from({ length: Number(start) }, (_, n) => app.start(both, null, { id: `both-${n}` })));
process.send!({ result: "ready" });
