// A fan-out in a process of its own that says when its sink was called: node latency-process.ts STORE [KIND]
import { systemClock } from "../../src/base/clock.ts";
import { functionSink } from "../../src/events/sinks/function.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { feedTenant } from "./feed.ts";

export type LatencyMessage =
  | { readonly say: "ready" }
  /** Ids of events, and when the sink was called, on the clock that all processes share. */
  | { readonly say: "called"; readonly at: number; readonly ids: readonly string[] };

const [store = "", kinds = "outline"] = process.argv.slice(2);
const runner = createRunner({ workflows: [] });
const app = await Tape.open({ store, runner, tenant: feedTenant, work: false, report: false, log: "warn" });
const send = (message: LatencyMessage): void => void process.send?.(message);
const sink = functionSink(
  (events) => {
    if (kinds === "all") send({ say: "called", at: systemClock.mono(), ids: events.map(({ id }) => id) });
    return undefined;
  },
  { events: 1_000 },
);
app.fanouts.start({ name: "latency", sink, filter: { kinds: [kinds] } });
while (!(await hasStarted())) await systemClock.sleep(20);
send({ say: "ready" });

/** Whether the fan-out has its lease, and has decided where it begins. */
async function hasStarted(): Promise<boolean> {
  const view = await app.store.read.lease(feedTenant, { name: "sink latency" });
  return view?.checkpoint !== undefined;
}
