import { Tape } from "../../src/host/tape.ts";
import type { Workflow } from "../../src/sdk/workflow.ts";
import { buildRunner, type Orders } from "./engine-world.ts";

/** A whole program in a process of its own: it starts orders, and drives whatever there is to drive. */
const orders = JSON.parse(process.argv[2]!) as Orders;
const runner = buildRunner(orders);
const app = await Tape.open({ store: orders.url, runner, leaseTtl: orders.ttlMs, concurrency: 250 });
const checkout = runner.workflows.get("checkout") as unknown as Workflow<{ order: number }, string>;
// A few at a time: a grant that comes later than the lease can be trusted is of no use.
for (let next = 0; next < orders.start; next += 20) {
  const some = Array.from({ length: Math.min(20, orders.start - next) }, (_, k) => next + k);
  await Promise.all(some.map((order) => app.start(checkout, { order }, { id: `order-${order}` })));
}
process.send!({ say: "ready" });
