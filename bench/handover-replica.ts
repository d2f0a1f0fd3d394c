import { systemClock } from "../src/base/clock.ts";
import { Tape } from "../src/host/tape.ts";
import { createRunner } from "../src/sdk/workflow.ts";

/** A replica in a process of its own: runs one singleton, says when it leads, steps down when it is told to. */
export type Said = { readonly say: "ready" } | { readonly say: "leads" | "steps down"; readonly at: number };

const [store = "", name = "", ttl = ""] = process.argv.slice(2);
const app = await Tape.open({ store, runner: createRunner({ workflows: [] }), work: false });
const say = (said: Said): void => void process.send?.(said);

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
