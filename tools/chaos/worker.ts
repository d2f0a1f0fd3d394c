// A replica: the worker and all five reactors, until somebody kills it.
import { appendFileSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { jsonLog } from "../../src/base/log.ts";
import { Tape } from "../../src/host/tape.ts";
import { buildProgram, type Orders } from "./program.ts";

const orders = JSON.parse(process.argv[2]!) as Orders & { readonly log: string };
const { runner } = buildProgram(orders);
const log = jsonLog((line) => appendFileSync(orders.log, line), systemClock.wall);
const options = { runner, leaseTtl: orders.ttlMs, concurrency: 100, log };
if (orders.servers.length > 0) await Tape.connect(orders.servers, options);
else await Tape.open({ ...options, store: orders.url });
process.send!({ say: "ready" });
process.on("disconnect", () => process.exit()); // whoever started it is gone
