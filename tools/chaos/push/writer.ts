// A process that starts the runs it is asked for, and dies in between when it is asked to. A committed start is written
// into a file before anything else happens.
import { appendFileSync } from "node:fs";
import { openStore } from "../../../src/host/open-store.ts";
import { Tape } from "../../../src/host/tape.ts";
import { type Death, dyingStore, dyingWaker } from "../../../test/processes/dying.ts";
import type { StartedRun } from "../judge.ts";
import { budgets, buildProgram } from "../program.ts";
import { persistently } from "../store-calls.ts";
import { servicesAt } from "./services.ts";

export interface WriterOrders {
  readonly url: string;
  readonly world: string;
  readonly tasks: string;
  readonly commits: string;
}
export interface WriterCommand {
  readonly run: StartedRun;
  readonly death?: Death;
}
/** "sent": the write is under way, and the parent kills this process. "started": the start was acknowledged. */
export type WriterNote = { readonly id: string; readonly is: "sent" | "started" };

const orders = JSON.parse(process.argv[2]!) as WriterOrders;
process.on("disconnect", () => process.exit()); // the parent has ended
const note = (one: WriterNote): void => void process.send!({ type: "note", note: one });
let command: WriterCommand | undefined;
const dying = {
  death: () => command?.death,
  sent: () => note({ id: command!.run.id, is: "sent" }),
  committed: () => appendFileSync(orders.commits, `${command!.run.id}\n`),
};
const { runner, flows } = buildProgram({ world: orders.world, worker: "writer" });
const { alarms, waker } = servicesAt(orders.tasks);
const serverless = { alarms, waker: dyingWaker(waker, dying) };
const store = dyingStore(await persistently(() => openStore(orders.url)), dying);
const app = await Tape.open({ store, runner, work: false, serverless, log: "silent" });
process.on("message", async (next: WriterCommand) => {
  command = next;
  const { id, flow, ms } = next.run;
  const budget = budgets[flow];
  const options = { id, ...(budget === undefined ? {} : { budget }) };
  await persistently(() => app.start(flows[flow]!, { run: id, ms }, options));
  note({ id, is: "started" });
});
process.send!({ type: "ready" });
