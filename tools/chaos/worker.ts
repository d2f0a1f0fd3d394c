// A replica: the worker, all five reactors and a singleton, until it is killed.
import { StatementSync } from "node:sqlite";
import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { fileLog } from "./file-log.ts";
import { buildProgram, sweeper, type WorkerOptions } from "./program.ts";
import type { WorkerCommand } from "./replicas.ts";
import { sending, stopBeforeSending } from "./stop-before-sending.ts";
import { persistently } from "./store-calls.ts";

const options = JSON.parse(process.argv[2]!) as WorkerOptions & { readonly log: string };

const log = fileLog(options.log);

/**
 * From outside, a process can only be stopped by luck between two statements of one turn of the event loop. So it stops
 * itself there on command: SQLite holds the file's write lock at that moment.
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

process.on("message", (command: WorkerCommand) => {
  if (command === "clock") return void process.send!({ type: "clock", wall: systemClock.wall() });
  stopInside = command === "stop in a transaction";
  stopBeforeSending(command === "stop before sending");
});
process.on("disconnect", () => process.exit()); // the parent has ended

const { runner } = buildProgram(options, sending);
const tapeOptions = { runner, leaseTtl: options.ttlMs, concurrency: 100, log };
const app = await persistently(() =>
  options.servers.length > 0
    ? Tape.connect(options.servers, tapeOptions)
    : Tape.open({ ...tapeOptions, store: options.url }),
);
await persistently(() => app.singleton("sweeper", sweeper(options), { poll: "1s", drain: "1s" }));
process.send!({ type: "ready" });
