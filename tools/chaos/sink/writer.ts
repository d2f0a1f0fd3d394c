// A worker that starts runs and drives them, until it is killed. It notes every start that was acknowledged.
import { systemClock } from "../../../src/base/clock.ts";
import { Tape } from "../../../src/host/tape.ts";
import { createRunner, workflow } from "../../../src/sdk/workflow.ts";
import { fileLog } from "../file-log.ts";
import { persistently } from "../store-calls.ts";
import type { WriterOrders } from "./orders.ts";

const orders = JSON.parse(process.argv[2]!) as WriterOrders;
process.on("disconnect", () => process.exit()); // the parent has ended
const stop = new AbortController();
process.on("message", () => stop.abort());
const steps = workflow("steps", async (tape, n: number) => {
  let sum = 0;
  for (let k = 0; k < 3; k++) sum += await tape.step(`step ${k}`, () => n + k);
  return sum;
});
const runner = createRunner({ workflows: [steps] });
const app = await persistently(() =>
  Tape.open({ store: orders.url, runner, leaseTtl: orders.ttlMs, log: fileLog(orders.log) }),
);
process.send!({ type: "ready" });
for (let n = 1; !stop.signal.aborted; n++) {
  const id = `${orders.worker}-${n}`;
  await persistently(() => app.start(steps, n, { id }));
  process.send!({ type: "note", note: id });
  await systemClock.sleep(orders.everyMs, stop.signal);
}
