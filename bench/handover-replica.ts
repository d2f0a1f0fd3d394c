import { systemClock } from "../src/base/clock.ts";
import { Tape } from "../src/host/tape.ts";
import { createRunner } from "../src/sdk/workflow.ts";

/** A replica in its own process: runs one singleton, reports when it leads, steps down on request. */
export type Message = { readonly say: "ready" } | { readonly say: "leads" | "steps down"; readonly at: number };

const [store = "", name = "", ttl = ""] = process.argv.slice(2);
const app = await Tape.open({ store, runner: createRunner({ workflows: [] }), work: false });
const say = (message: Message): void => void process.send?.(message);

const stand = () =>
  app.singleton(
    name,
    async ({ abortSignal, sleep }) => {
      say({ say: "leads", at: systemClock.mono() }); // CLOCK_MONOTONIC: the same in all processes
      while (!abortSignal.aborted) await sleep("1m");
    },
    { ttl: Number(ttl), poll: "60s" },
  );

let singleton = await stand();
process.on("message", async (word: "step down" | "stand by") => {
  if (word === "stand by") {
    singleton = await stand();
    return;
  }
  say({ say: "steps down", at: systemClock.mono() });
  await singleton.stop();
});
say({ say: "ready" });
