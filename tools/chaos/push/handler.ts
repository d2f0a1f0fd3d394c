// A process with HTTP handlers and nothing else: it works only while it is called, until it is killed.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Tape } from "../../../src/host/tape.ts";
import { toNode } from "../../../src/push/adapters.ts";
import { pushHandler } from "../../../src/push/handler.ts";
import { unverified } from "../../../src/push/verify/secret.ts";
import { fileLog } from "../file-log.ts";
import { buildProgram, type WorkerOptions } from "../program.ts";
import type { WorkerCommand } from "../replicas.ts";
import { sending, stopBeforeSending } from "../stop-before-sending.ts";
import { persistently } from "../store-calls.ts";
import { servicesAt } from "./services.ts";

const orders = JSON.parse(process.argv[2]!) as WorkerOptions & { readonly log: string; readonly tasks: string };
process.on("message", (command: WorkerCommand) => stopBeforeSending(command === "stop before sending"));
process.on("disconnect", () => process.exit()); // the parent has ended

const log = fileLog(orders.log);
const { runner } = buildProgram(orders, sending);
const serverless = servicesAt(orders.tasks);
const app = await persistently(() =>
  Tape.open({ store: orders.url, runner, leaseTtl: orders.ttlMs, work: false, serverless, log }),
);
const options = { verify: unverified("only this machine reaches it"), within: "12s", log } as const;
const sweep = toNode(pushHandler(app, { ...options, sweep: true }));
const reactors = ["timers", "recovery", "outbox", "reconciler", "compensation"];
const push = toNode(pushHandler(app, { ...options, reactors, waker: serverless.waker as never }));
const server = createServer((request, response) => {
  void (request.url?.startsWith("/sweep") === true ? sweep : push)(request, response);
});
server.listen(0, "127.0.0.1", () => {
  process.send!({ type: "ready", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
