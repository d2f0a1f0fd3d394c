// A fan-out in a process of its own: node fanout-process.ts STORE RECEIVER TTL_MS
import { cloudEventsSink } from "../../src/events/sinks/cloudevents.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";

const [store, url, ttlMs] = process.argv.slice(2) as [string, string, string];
const app = await Tape.open({
  store,
  runner: createRunner({ workflows: [] }),
  work: false,
  report: false,
  leaseTtl: Number(ttlMs),
  log: "silent",
});
const sink = cloudEventsSink({ url, batch: 20, allow: ["127.0.0.1"], timeout: "5s" });
app.fanouts.start({ name: "ledger", sink, filter: { kinds: ["all"] }, from: "start", lanes: 8, window: 1_000 });
process.send?.("ready");
process.on("SIGTERM", () => void app.close().then(() => process.exit(0)));
