// A replica that sweeps shards, in a process of its own: node shards-replica.ts STORE SHARDS TTL_MS
import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { countStatements, type StatementCount } from "./count-statements.ts";

/** Times are of the clock that all processes share. */
export type ShardMessage =
  | { readonly say: "ready" }
  | { readonly say: "begins" | "ends"; readonly shard: number; readonly token: string; readonly at: number }
  | { readonly say: "counted"; readonly count: StatementCount; readonly ms: number };

const [store = "", shards = "16", ttl = "30000"] = process.argv.slice(2);
const app = await Tape.open({ store, runner: createRunner({ workflows: [] }), work: false, log: "silent" });
const send = (message: ShardMessage): void => void process.send?.(message);
await app.singleton(
  "sweep",
  async ({ shard, token, abortSignal, sleep }) => {
    const report = (what: "begins" | "ends"): void =>
      send({ say: what, shard: shard!.index, token: String(token), at: systemClock.mono() });
    report("begins");
    try {
      while (!abortSignal.aborted) await sleep("1m");
    } finally {
      report("ends");
    }
  },
  { shards: Number(shards), ttl: Number(ttl) },
);
process.on("message", async ({ countMs }: { readonly countMs: number }) => {
  const stop = countStatements();
  const from = systemClock.mono();
  await systemClock.sleep(countMs);
  send({ say: "counted", ms: systemClock.mono() - from, count: stop() });
});
send({ say: "ready" });
