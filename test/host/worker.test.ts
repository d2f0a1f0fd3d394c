import { afterEach, expect, it } from "vitest";
import type { Log } from "../../src/base/log.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled as turns } from "../../testkit/clock.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";

const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `hello ${name}`));
const other = workflow("other", async (tape, name: string) => tape.step("greet", () => `hi ${name}`));
const open: Tape[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((app) => app.close()));
});

async function opened(work = true): Promise<Tape> {
  const app = await Tape.open({
    store: await openStore("memory:"),
    runner: createRunner({ workflows: [hello] }),
    work,
  });
  open.push(app);
  return app;
}

it("a worker drives the workflows of its own runner, in addition to those of the app", async () => {
  const app = await opened();
  app.worker(createRunner({ workflows: [other] }), { concurrency: 2 });
  const runs = await Promise.all([app.start(other, "Ada"), app.start(other, "Grace"), app.start(hello, "Mary")]);
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(["hi Ada", "hi Grace", "hello Mary"]);
});

it("a drained worker claims no more runs; another worker finds the runs started meanwhile", async () => {
  const app = await opened(false);
  const worker = app.worker(createRunner({ workflows: [other] }));
  expect(await (await app.start(other, "Ada")).result()).toBe("hi Ada");
  await worker.drain();
  const late = await app.start(other, "Joan");
  expect(await late.status()).toBe("RUNNABLE");
  app.worker(createRunner({ workflows: [other] }));
  expect(await late.result()).toBe("hi Joan"); // from the store
});

it("the journal is read record by record, across pages, from any record", async () => {
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

it("a run whose workflow no process has stays RUNNABLE and is reported: result throws TAPE_NO_WORKER", async () => {
  const clock = new VirtualTime();
  const events: string[] = [];
  const log: Log = (_level, event, fields) =>
    void events.push(`${event} ${fields?.missing ?? ""} ${fields?.code} ${fields?.next}`);
  const store = await clock.during(openStore("memory:", { clock }));
  const app = await clock.during(Tape.open({ store, runner: createRunner({ workflows: [hello] }), clock, log }));
  const run = await clock.during(app.start(other, "Ada"));
  await expect(clock.during(run.result())).rejects.toMatchObject({ code: "TAPE_NO_WORKER" });
  expect(await clock.during(store.read.terms(app.tenant, { run: run.id }))).toEqual([]); // no process has tried
  await clock.during(clock.sleep(30_000));
  expect(events.filter((event) => event.startsWith("reactor."))).toEqual([
    expect.stringMatching(
      /^reactor\.no_handler workflow other TAPE_NO_WORKER Start a process .* Or cancel the runs\.$/,
    ),
  ]);
  app.worker(createRunner({ workflows: [other] }));
  expect(await clock.during(run.result())).toBe("hi Ada");
  await clock.during(app.close());
  await clock.during(store.close());
});

it("a journal of several pages, and one that fills its last page, is read completely", async () => {
  const ok = gate<boolean>("ok");
  const executed: number[] = [];
  const long = workflow("long", async (tape, steps: number) => {
    for (let k = 0; k < steps; k++) await tape.step(`s${k}`, () => executed.push(k));
    await tape.gate(ok);
    return steps;
  });
  const runner = createRunner({ workflows: [long] });
  const store = await openStore("memory:", { limits: { pageRows: 4 } });
  const first = await Tape.open({ store, runner });
  // run.created, the steps, gate.opened, term.ended, and the successor's term.started: 8 to 12 records.
  const runs = await Promise.all([4, 5, 6, 7, 8].map((steps) => first.start(long, steps)));
  const ids = runs.map(({ id }) => id);
  for (const run of runs) while ((await run.status()) !== "WAITING") await turns();
  await first.close();
  expect(executed).toHaveLength(30);
  const second = await Tape.open({ store, runner });
  open.push(second);
  for (const id of ids) await second.signal(id, ok, true);
  const results = ids.map(async (id) => (await second.run<number>(id)).result());
  expect(await Promise.all(results)).toEqual([4, 5, 6, 7, 8]);
  expect(executed).toHaveLength(30); // nothing was executed again
});
