import { Tape } from "../../src/host/tape.ts";
import type { Workflow } from "../../src/sdk/workflow.ts";
import { buildRunner, type WorkerOptions } from "./engine-world.ts";

/** A whole program in a process of its own: it starts orders, and drives all runs. */
const options = JSON.parse(process.argv[2]!) as WorkerOptions;
const runner = buildRunner(options);
const app = await Tape.open({ store: options.url, runner, leaseTtl: options.ttlMs, concurrency: 250 });
const checkout = runner.workflows.get("checkout") as unknown as Workflow<{ order: number }, string>;
// A few at a time, so that no grant arrives after its lease has expired.
for (let next = 0; next < options.start; next += 20) {
  const some = Array.from({ length: Math.min(20, options.start - next) }, (_, k) => next + k);
  await Promise.all(some.map((order) => app.start(checkout, { order }, { id: `order-${order}` })));
}
process.send!({ result: "ready" });
