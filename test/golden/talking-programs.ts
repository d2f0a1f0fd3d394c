import { z } from "zod";
import { findEntry } from "../../examples/ledger.ts";
import { createRunner, effect, gate, object, queue, workflow } from "../../src/exports/index.ts";
import { any, atGate, liveRun, type Program, runId } from "./program.ts";

/** Runs that talk: gates, signals, requests, callbacks, children, queues, objects, budgets, forks. */

const yes = gate<{ approved: boolean }>("yes", { schema: z.object({ approved: z.boolean() }) });
const order = gate<{ sku: string }, { total: number }>("order", { reply: true });
const silent = gate("silent");
const go = gate<string>("go");

const gates: Program = {
  name: "gates",
  build(world) {
    const pay = effect("pay", (amount: number) => world.add({ kind: "pay", subject: String(amount) }), {
      semantics: "idempotent",
    });
    const flow = workflow("gates", async (tape) => {
      const call = pay.with(7);
      const approved = await tape.gate(yes, { binds: call, payload: { amount: 7 }, timeout: "30d" });
      const nothing = await tape.gate(silent, { timeout: "10s" });
      const request = await tape.gate(order);
      if (request.status === "received") request.reply({ total: request.value.sku.length });
      const back = await tape.callback<{ paid: boolean }>("paid", { timeout: "30d" });
      await tape.step("send address", () => {
        if (!findEntry(world, "address", back.token)) world.add({ kind: "address", subject: back.token });
      });
      const paid = await back.result();
      tape.publish("state", "nearly done");
      await tape.step("end", () => "end");
      return { approved, nothing, paid };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow], effects: [pay], gates: [yes, order] }) };
  },
  async client(around) {
    const { app, once, world } = around;
    await atGate(around, "yes", async (binds, run) => {
      // The first one does not match the gate's schema: it is refused, and the gate keeps waiting.
      await app.store.intake.signal(app.tenant, run, {
        name: "yes",
        value: "maybe",
        key: "k0",
        ...(binds && { binds }),
      });
      await app.signal(run, yes, { approved: true }, { key: "k1", by: "ada", binds });
    });
    if (liveRun(around)) once("ask", () => app.ask(runId, order, { sku: "b-117" }, { key: "click" }));
    const address = world.entries().find(({ kind }) => kind === "address");
    if (address && liveRun(around)) once("deliver", () => app.deliver(address.subject, { paid: true }));
  },
};

const children: Program = {
  name: "children",
  build() {
    const leaf = workflow("leaf", async (tape, n: number) => {
      const doubled = await tape.step("double", () => n * 2);
      if (n === 13) throw new Error("unlucky");
      if (n === 3) await tape.gate(go);
      return doubled;
    });
    const flow = workflow("children", async (tape) => {
      const one = await tape.call(leaf, 1);
      const spawned = await Promise.all([tape.spawn(leaf, 2, { labels: { kind: "leaf" } }), tape.spawn(leaf, 3)]);
      const failed = await tape.call(leaf, 13).catch((error: unknown) => (error as { code?: string }).code);
      const results = await Promise.all(spawned.map((child) => child.result()));
      return { one, failed, results };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow, leaf] }) };
  },
  client: (around) => atGate(around, "go", (_, run) => around.app.signal(run, go, "now", { key: "go" })),
};

const queued: Program = {
  name: "queued",
  start: { labels: { team: "blue" } },
  build() {
    const narrow = queue("narrow", { concurrency: 2, perKey: { concurrency: 1 } });
    const job = workflow(
      "job",
      async (tape, n: number) => {
        await tape.sleep("1s");
        return tape.step("work", () => n + 1);
      },
      { queue: narrow, key: (n) => `k${n % 2}` },
    );
    const flow = workflow("queued", async (tape) => {
      const jobs = await Promise.all([1, 2, 3].map((n) => tape.spawn(job, n)));
      const last = await tape.spawn(job, 9, { priority: 1 });
      return { results: await Promise.all([...jobs, last].map((child) => child.result())) };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow, job], queues: [narrow] }) };
  },
};

const objects: Program = {
  name: "objects",
  build() {
    const counter = object("counter", {
      initial: () => 10,
      handlers: {
        add: async (tape, self, by: number) => {
          await self.set(self.state + by);
          await tape.sleep("1s");
          return self.state;
        },
      },
    });
    const flow = workflow("objects", async (tape) => {
      const visits = tape.object(counter, "visits");
      const sums = await Promise.all([visits.add(1), visits.add(2)]);
      const other = await tape.object(counter, "other").add(5);
      return { sums: sums.sort(), other, state: await visits.state() };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow], objects: [counter] }) };
  },
};

const budgets: Program = {
  name: "budgets",
  start: { budget: { usd: 5 } },
  build() {
    const flow = workflow("budgets", async (tape) => {
      const spend = (name: string, estimate: number, cost: number) =>
        tape.budget.spend({ usd: estimate, calls: 1 }, async () => ({
          cost: { usd: cost, calls: 1 },
          value: await tape.step(name, () => name),
        }));
      const first = await spend("cheap", 1, 0.5);
      const second = await spend("dear", 3, 4);
      const third = await spend("never", 3, 3).catch((error: unknown) => (error as { code: string }).code);
      return { first, second, third };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
};

/** Two starts become one run, with the input of the second. */
const debounced: Program = {
  name: "debounced",
  input: 1,
  start: { debounce: { key: "typing", wait: "5s" } },
  build() {
    const flow = workflow("debounced", async (tape, n: number) => tape.step("search", () => n * 10));
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
  client(around) {
    if (!around.later && liveRun(around)) around.once("start", () => around.start(2));
  },
};

/** The run fails; a fork keeps its first half and completes. */
const forked: Program = {
  name: "forked",
  build(world) {
    const wire = effect("wire", (subject: string) => world.add({ kind: "wire", subject }), { allowUnsafe: "a test" });
    const flow = workflow("forked", async (tape) => {
      const kept = await tape.step("kept", () => "kept");
      const id = tape.uuid();
      await tape.effect(wire.with("once"));
      const book = await tape.step("book", () => {
        if (tape.runId === runId) throw new Error("the books are closed");
        return id.length;
      });
      await tape.gate(go, { timeout: "1h" });
      return { kept, book };
    });
    return { workflow: any(flow), runner: createRunner({ workflows: [flow], effects: [wire] }) };
  },
  client(around) {
    const { app, once, runs } = around;
    if (runs.length === 1 && runs[0]!.endedAt !== null)
      once("fork", async () => (await app.fork(runId, { by: "ada", reason: "fixed", id: "copy" })).id);
  },
};

/** Cancelled by its own deadline. */
const deadline: Program = {
  name: "deadline",
  build() {
    const flow = workflow(
      "deadline",
      async (tape) => {
        await tape.step("early", () => "early");
        await tape.gate(go);
      },
      { deadline: "1h", maxStall: "20m" },
    );
    return { workflow: any(flow), runner: createRunner({ workflows: [flow] }) };
  },
};

export const talkingPrograms: readonly Program[] = [gates, children, queued, objects, budgets, debounced];
/** They let hours pass. */
export const slowPrograms: readonly Program[] = [forked, deadline];
