// An announcer in a process of its own, which counts its statements: node announce-process.ts STORE SETTLE_MS MEASURE_MS
import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { announce } from "../../src/push/announce.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { countStatements, type StatementCount } from "./count-statements.ts";

export type AnnounceMessage = { readonly say: "measured"; readonly count: StatementCount; readonly ms: number };

const [store = "", settleMs = "0", measureMs = "0"] = process.argv.slice(2);
const app = await Tape.open({ store, runner: createRunner({ workflows: [] }), work: false, log: "warn" });
const waker = { label: "none", wake: async () => {} };
await announce(app, { reactors: ["recovery", "outbox", "reconciler", "compensation", "timers"], waker });
await systemClock.sleep(Number(settleMs));
const stop = countStatements();
const from = systemClock.mono();
await systemClock.sleep(Number(measureMs));
const message: AnnounceMessage = { say: "measured", ms: systemClock.mono() - from, count: stop() };
process.send?.(message);
