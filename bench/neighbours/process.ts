import { setTimeout as pause } from "node:timers/promises";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { followed, type Order, type Report, type Role, short } from "./work.ts";

/** One process of the benchmark on one store and for one tenant. It does what it is asked, and reports. */
const [role = "worker", store = "", tenant = "", token = ""] = process.argv.slice(2) as [Role, string, string, string];
const report = (what: Report): void => void process.send?.(what);
const runner = createRunner({ workflows: role === "worker" ? [short] : [] });
const options = { runner, work: role === "worker", log: "error" } as const;
const app = await (token === ""
  ? Tape.open({ ...options, store, tenant })
  : Tape.connect(store, { ...options, token }));

/** Runs of a workflow that no process serves: they stay due. */
const unserved = workflow("unserved", async () => undefined);
const batch = 500;

const orders: { readonly [K in Order["do"]]: (order: Extract<Order, { do: K }>) => Promise<void> } = {
  /** One run after the other: how long each takes from its start until its result is known. */
  async measure({ ms }) {
    const latencies: number[] = [];
    for (const until = performance.now() + ms; performance.now() < until; ) {
      const started = performance.now();
      await (await app.start(short, latencies.length)).result();
      latencies.push(performance.now() - started);
      await pause(5);
    }
    report({ say: "measured", latencies });
  },
  /** As many as were asked for, as fast as it goes. */
  async start({ runs, served }) {
    const name = served ? short.name : unserved.name;
    for (let done = 0; done < runs && !stopped; done += batch) {
      const specs = Array.from({ length: Math.min(batch, runs - done) }, (_, k) => {
        return { id: `${name}-${process.pid}-${done + k}`, workflow: name, input: 1 };
      });
      for (const verdict of await app.store.intake.createRuns(tenant, specs)) if (!verdict.ok) throw verdict.error;
    }
    report({ say: "done" });
  },
  /** Reads the whole feed from its beginning, again and again, several readers at a time. */
  async read({ readers }) {
    let records = 0;
    await Promise.all(
      Array.from({ length: readers }, async () => {
        while (!stopped) records += await followed(app.store, tenant, () => stopped);
      }),
    );
    report({ say: "done", records });
  },
  async stop() {
    stopped = true;
  },
  async close() {
    stopped = true;
    await app.close();
    process.disconnect?.();
  },
};

let stopped = false;
process.on("message", (order: Order) => {
  if (order.do !== "stop" && order.do !== "close") stopped = false;
  void (orders[order.do] as (order: Order) => Promise<void>)(order).catch((error: unknown) => {
    report({ say: "failed", error: String(error) });
  });
});
report({ say: "open" });
