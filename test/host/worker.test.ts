import { afterEach, expect, it } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { openMemory } from "../../src/store/memory/open.ts";

const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `hello ${name}`));
const other = workflow("other", async (tape, name: string) => tape.step("greet", () => `hi ${name}`));
const open: Tape[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((app) => app.close()));
});

async function opened(work = true): Promise<Tape> {
  const app = await Tape.open({ store: await openMemory(), runner: createRunner({ workflows: [hello] }), work });
  open.push(app);
  return app;
}

it("a worker drives the workflows of its own runner, beside those of the app", async () => {
  const app = await opened();
  app.worker(createRunner({ workflows: [other] }), { concurrency: 2 });
  const runs = await Promise.all([app.start(other, "Ada"), app.start(other, "Grace"), app.start(hello, "Mary")]);
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(["hi Ada", "hi Grace", "hello Mary"]);
});

it("once drained it takes nothing more; another finds what was started meanwhile", async () => {
  const app = await opened(false);
  const worker = app.worker(createRunner({ workflows: [other] }));
  expect(await (await app.start(other, "Ada")).result()).toBe("hi Ada");
  await worker.drain();
  const late = await app.start(other, "Joan");
  expect(await late.status()).toBe("RUNNABLE");
  app.worker(createRunner({ workflows: [other] }));
  expect(await late.result()).toBe("hi Joan"); // from the store
});

it("the journal is handed out record by record, over pages, from where one wants", async () => {
  const app = await opened();
  const run = await app.start(hello, "Ada");
  await run.result();
  const records = await Array.fromAsync(app.journal(run.id));
  expect(records.map(({ seq, kind }) => `${seq} ${kind}`)).toEqual(["1 run.created", "2 step.done", "3 run.ended"]);
  const [second] = await Array.fromAsync(app.journal(run.id, { from: 2 }));
  expect(second?.seq).toBe(2);
  expect(await Array.fromAsync(app.journal("absent"))).toEqual([]);
  expect(await app.timers.list()).toEqual([]);
});
