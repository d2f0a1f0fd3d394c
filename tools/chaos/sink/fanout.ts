// A fan-out to the receiver, until it is killed.
import { cloudEventsSink } from "../../../src/events/sinks/cloudevents.ts";
import { Tape } from "../../../src/host/tape.ts";
import { createRunner } from "../../../src/sdk/workflow.ts";
import { fileLog } from "../file-log.ts";
import { persistently } from "../store-calls.ts";
import { batch, type FanoutOrders, lanes, sinkName, window } from "./orders.ts";

const orders = JSON.parse(process.argv[2]!) as FanoutOrders;
process.on("disconnect", () => process.exit()); // the parent has ended
const app = await persistently(() =>
  Tape.open({
    store: orders.url,
    runner: createRunner({ workflows: [] }),
    work: false,
    report: false,
    leaseTtl: orders.ttlMs,
    log: fileLog(orders.log),
  }),
);
const sink = cloudEventsSink({
  url: orders.receiver,
  batch,
  allow: ["127.0.0.1"],
  headers: { "x-worker": orders.worker },
  timeout: orders.sendMs,
});
app.fanouts.start({ name: sinkName, sink, filter: { kinds: ["all"] }, from: "start", lanes, window });
process.send!({ type: "ready" });
