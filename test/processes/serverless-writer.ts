// A process that starts one run and dies on the way: before its commit, before its wake-up, or after it.
import type { Alarms } from "../../src/alarm/alarms.ts";
import { cloudTasksAlarms } from "../../src/alarm/cloud-tasks.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { type Death, dyingStore, dyingWaker } from "./dying.ts";
import { hello, queue, runner } from "./serverless-world.ts";

const [url, endpoint, id, death] = process.argv.slice(2) as [string, string, string, Death];

/** NATS is loaded only where it is used: its client is not among the dependencies of the tests. */
const alarms: Alarms = endpoint.startsWith("nats:")
  ? (await (await import("../../bench/events/nats.ts")).openNats(endpoint)).alarms
  : cloudTasksAlarms({ queue, url: "http://app.example/sweep", endpoint, token: async () => "t" });
const dying = { death: () => death, sent: () => void process.send?.("sent") }; // its parent kills it
const store = dyingStore(await openStore(url), dying);
const app = await Tape.open({ store, runner, serverless: { alarms, waker: dyingWaker(undefined, dying) } });
await app.start(hello, id, { id });
