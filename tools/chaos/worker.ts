// A replica: the worker, all five reactors and a singleton, until somebody kills it.
import { appendFileSync } from "node:fs";
import { StatementSync } from "node:sqlite";
import { systemClock } from "../../src/base/clock.ts";
import { jsonLog } from "../../src/base/log.ts";
import { Tape } from "../../src/host/tape.ts";
import { buildProgram, type Orders, sweeper } from "./program.ts";
import type { Order } from "./replicas.ts";
import { persistently } from "./store-calls.ts";

const orders = JSON.parse(process.argv[2]!) as Orders & { readonly log: string };

/** A full disk may take no log either: that must not be what ends the process. */
const write = (line: string): void => {
  try {
    appendFileSync(orders.log, line);
  } catch {}
};
const log = jsonLog(write, systemClock.wall);

/**
 * A process cannot be stopped from outside between two statements of one turn of the event loop, but for luck. So it
 * stops itself there, when asked to: SQLite holds the file's write lock at that moment.
 */
let stopInside = false;
const { run } = StatementSync.prototype;
StatementSync.prototype.run = function stopping(this: StatementSync, ...values: Parameters<typeof run>) {
  const changes = run.apply(this, values);
  if (stopInside && /^\s*(--[^\n]*\s+)*(insert|update)/i.test(this.sourceSQL)) {
    stopInside = false;
    process.kill(process.pid, "SIGSTOP");
  }
  return changes;
} as typeof run;

let stopBeforeSending = false;
const sending = (): void => {
  if (!stopBeforeSending) return;
  stopBeforeSending = false;
  process.kill(process.pid, "SIGSTOP");
};

process.on("message", (order: Order) => {
  if (order === "clock") return void process.send!({ say: "clock", wall: systemClock.wall() });
  stopInside = order === "stop in a transaction";
  stopBeforeSending = order === "stop before sending";
});
process.on("disconnect", () => process.exit()); // whoever started it is gone

const { runner } = buildProgram(orders, sending);
const options = { runner, leaseTtl: orders.ttlMs, concurrency: 100, log };
const app = await persistently(() =>
  orders.servers.length > 0 ? Tape.connect(orders.servers, options) : Tape.open({ ...options, store: orders.url }),
);
await persistently(() => app.singleton("sweeper", sweeper(orders), { poll: "1s", drain: "1s" }));
process.send!({ say: "ready" });
