// A process that starts one run and dies on the way: before its commit, before its wake-up, or after it.
import type { Alarms } from "../../src/alarm/alarms.ts";
import { cloudTasksAlarms } from "../../src/alarm/cloud-tasks.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { type Death, hello, queue, runner } from "./serverless-world.ts";

const [url = "", endpoint = "", id = "", death = ""] = process.argv.slice(2) as [string, string, string, Death];

/** Nothing runs after this line, not even what is queued. */
const die = (): void => void process.kill(process.pid, "SIGKILL");

/** NATS is loaded only where it is used: its client is not among the dependencies of the tests. */
const service = endpoint.startsWith("nats:")
  ? (await (await import("../../bench/events/nats.ts")).openNats(endpoint)).alarms
  : cloudTasksAlarms({ queue, url: "http://app.example/sweep", endpoint, token: async () => "t" });
const alarms: Alarms = {
  furthestMs: service.furthestMs,
  set: async (alarm) => {
    await service.set(alarm);
    if (death === "armed") die();
  },
};
const waker = {
  wake: async (): Promise<void> => {
    if (death === "woken") die();
  },
};
const inner = await openStore(url);
const store = {
  ...inner,
  intake: {
    ...inner.intake,
    createRuns: async (...args: Parameters<typeof inner.intake.createRuns>) => {
      const results = inner.intake.createRuns(...args);
      if (death === "sent") process.send?.("sent"); // its parent kills it
      await results;
      if (death === "committed") die();
      return results;
    },
  },
};
const app = await Tape.open({ store, runner, serverless: { alarms, waker } });
await app.start(hello, id, { id });
