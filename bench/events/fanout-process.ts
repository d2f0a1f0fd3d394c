// A fan-out in a process of its own: node fanout-process.ts STORE RECEIVER TTL_MS WINDOW
import { cloudEventsSink } from "../../src/events/sinks/cloudevents.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";

const [store, url, ttlMs, window] = process.argv.slice(2) as [string, string, string, string];
const app = await Tape.open({
  store,
  runner: createRunner({ workflows: [] }),
  work: false,
  report: false,
  leaseTtl: Number(ttlMs),
  log: "silent",
});
const sink = cloudEventsSink({ url, batch: 20, allow: ["127.0.0.1"], timeout: "5s" });
const filter = { kinds: ["all"] };
app.fanouts.start({ name: "ledger", sink, filter, from: "start", lanes: 8, window: Number(window) });
process.send?.("ready");
process.on("SIGTERM", () => void app.close().then(() => process.exit(0)));
