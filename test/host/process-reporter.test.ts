import { expect, it } from "vitest";
import { z } from "zod";
import { type ProcessActivity, ProcessReporter } from "../../src/host/process-reporter.ts";
import { TapeError } from "../../src/model/errors.ts";
import { ReactorLoop } from "../../src/reactor/loop.ts";
import type { Reactor } from "../../src/reactor/reactor.ts";
import { gate } from "../../src/sdk/gate.ts";
import { queue } from "../../src/sdk/queue.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { IntakeOps, ProcessReport, Store } from "../../src/store/contract/store.ts";
import { noRunner, setStage, tenant, untilAborted } from "./stage.ts";

interface Body {
  readonly startedAt: number;
  readonly driving: number;
  readonly reactors: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly singletons: readonly { readonly name: string; readonly state: string; readonly token?: string }[];
  readonly gates?: Readonly<Record<string, object>>;
}

const reportsIn = async (store: Store) =>
  (await store.read.processes(tenant)).map(({ owner, body }) => ({ owner, ...(body as Body) }));

/** A store that passes every report and every removal to `onSend`, which forwards it or not. */
function listening(onSend: (send: () => Promise<void>, report: ProcessReport | string) => Promise<void>) {
  return (store: Store): Store => {
    const report: IntakeOps["reportProcess"] = (of, one) => onSend(() => store.intake.reportProcess(of, one), one);
    const unreport: IntakeOps["removeProcess"] = (of, owner) =>
      onSend(() => store.intake.removeProcess(of, owner), owner);
    return { ...store, intake: { ...store.intake, reportProcess: report, removeProcess: unreport } };
  };
}

it("two apps with one singleton are both listed, one as its holder, until they close", async () => {
  const { clock, store, app } = await setStage();
  const [one, two] = [await app("one"), await app("two")];
  await one.singleton("sweeper", ({ abortSignal }) => untilAborted(abortSignal));
  await clock.elapse(200_000);
  await two.singleton("sweeper", ({ abortSignal }) => untilAborted(abortSignal));
  await clock.elapse(16_000);
  const lease = (await store.read.lease(tenant, { name: "sweeper" }))!;
  const processes = await reportsIn(store);
  expect(processes.map(({ singletons }) => singletons[0]?.state).sort()).toEqual(["holder", "standby"]);
  const holder = processes.find(({ owner }) => owner === lease.owner)!;
  expect(holder.singletons).toEqual([{ name: "sweeper", state: "holder", token: String(lease.token) }]);
  expect(holder.reactors).toEqual({});
  const closing = one.close();
  await clock.elapse(1_000);
  await closing;
  expect((await reportsIn(store)).map(({ owner }) => owner)).toEqual(
    processes.map(({ owner }) => owner).filter((owner) => owner !== lease.owner),
  );
});

it("a report describes the values of gates: registered ones, and those that a run has opened", async () => {
  const { clock, store, app } = await setStage();
  const rate = gate("rate", { schema: z.object({ percent: z.number().max(9) }) });
  const memo = gate("memo", { schema: z.string() });
  const odd = gate("odd", { schema: z.string().transform(Number) }); // only its input has words in JSON Schema
  const plain = gate("plain");
  const long = gate("long", { schema: z.enum(Array.from({ length: 1_000 }, (_, k) => `choice ${k}`)) });
  const ask = workflow("ask", (tape) => tape.gate(memo));
  const runner = createRunner({ workflows: [ask], gates: [rate, odd, plain, long] });
  const one = await app("one", { runner, work: true });
  await clock.elapse(2_000);
  const gatesIn = async () => (await reportsIn(store)).map(({ gates }) => gates);
  const percent = { type: "object", properties: { percent: { type: "number", maximum: 9 } }, required: ["percent"] };
  expect(await gatesIn()).toEqual([
    { rate: expect.objectContaining(percent), odd: expect.objectContaining({ type: "string" }) },
  ]);
  await one.start(ask, undefined);
  await clock.elapse(16_000);
  expect(await gatesIn()).toMatchObject([{ rate: percent, odd: {}, memo: { type: "string" } }]);
  expect(Object.keys((await gatesIn())[0]!)).toEqual(["rate", "odd", "memo"]);
});

it("an app that drives runs reports its reactors; an app that does no work, or has reports off, reports nothing", async () => {
  const sent: unknown[] = [];
  const { clock, store, app } = await setStage({
    wrap: listening((send, report) => {
      sent.push(report);
      return send();
    }),
  });
  const held = Promise.withResolvers<void>();
  const slow = workflow("slow", async (tape) => tape.step("wait", () => held.promise));
  const runner = createRunner({ workflows: [slow], queues: [queue("models")] });
  await app("reads");
  await app("silent", { runner, work: true, report: false });
  await clock.elapse(60_000);
  expect(sent).toEqual([]);
  const works = await app("works", { runner, work: true });
  await works.start(slow, undefined);
  await clock.elapse(900);
  expect(sent).toEqual([]);
  await clock.elapse(200);
  expect(sent).toHaveLength(1);
  const [process] = await reportsIn(store);
  expect(process).toMatchObject({ driving: 1, singletons: [], startedAt: clock.wall() - 1_100 });
  expect(Object.keys(process!.reactors).sort()).toEqual(
    ["compensation", "outbox", "reconciler", "recovery", "timers"].sort(),
  );
  held.resolve();
  await clock.elapse(60_000);
  expect(sent).toHaveLength(5); // one every 15 s, and no others
  expect(await reportsIn(store)).toMatchObject([{ driving: 0, workflows: ["slow"], queues: ["models"] }]);
});

/** A process reporter over the activity that `activity` returns. */
async function setReporter(activity: () => ProcessActivity, wrap?: (store: Store) => Store) {
  const { clock, store } = await setStage(wrap === undefined ? {} : { wrap });
  const identity = { owner: "replica/1", label: "replica" };
  const events: string[] = [];
  const log = (_level: string, event: string) => void events.push(event);
  return { clock, store, events, reporter: new ProcessReporter({ store, tenant, identity, clock, log }, activity) };
}
const busyWork: ProcessActivity = {
  stats: [],
  singletons: [{ name: "s", state: "standby" } as never],
  driving: 0,
  workflows: [],
  effects: [],
  queues: [],
};

it("rates cover the last minute: an old failure stays in the count, but not in the rate", async () => {
  let loop: ReactorLoop | undefined;
  const { clock, store, reporter } = await setReporter(() => ({
    stats: loop === undefined ? [] : [loop.stats],
    singletons: [],
    driving: 0,
    workflows: [],
    effects: [],
    queues: [],
  }));
  let failing = true;
  const mine: Reactor = {
    name: "mine",
    async runOnce() {
      if (failing) throw new Error("no");
      return { found: 1, done: 0, failed: 0, lagMs: 7 };
    },
  };
  loop = new ReactorLoop({ reactors: [mine], store, clock, log: () => {}, idleMs: 1_000 });
  await loop.start();
  reporter.begin();
  await clock.elapse(1_001);
  const { faults, errorsPerMinute } = (await reportsIn(store))[0]!.reactors.mine!;
  expect(faults).toBeGreaterThan(0);
  expect(errorsPerMinute).toBe(faults);
  failing = false;
  await clock.elapse(30_000);
  expect((await reportsIn(store))[0]!.reactors.mine).toMatchObject({ faults: faults! + 0, lagMs: 7 });
  expect((await reportsIn(store))[0]!.reactors.mine!.errorsPerMinute).toBe(faults);
  await clock.elapse(60_000);
  expect((await reportsIn(store))[0]!.reactors.mine).toMatchObject({ faults, errorsPerMinute: 0, perMinute: 0 });
  const stopping = [loop.stop(), reporter.end()];
  await clock.elapse(5_000);
  await Promise.all(stopping);
  expect(await reportsIn(store)).toEqual([]);
});

it("the stats of several loops are added up by reactor", async () => {
  const loopStats = { polls: 1, faults: 1, busy: 2, unserved: 3, found: 4, done: 5, failed: 6, lagMs: 7 };
  const { clock, store, reporter } = await setReporter(() => ({
    stats: [{ outbox: loopStats }, { outbox: { ...loopStats, lagMs: 9 }, timers: loopStats }],
    singletons: [],
    driving: 3,
    workflows: [],
    effects: [],
    queues: [],
  }));
  reporter.begin();
  await clock.elapse(1_001);
  const [process] = await reportsIn(store);
  expect(process!.reactors.outbox).toEqual({
    ...{ found: 8, done: 10, failed: 12, faults: 2, busy: 4, unserved: 6, lagMs: 9 },
    ...{ perMinute: 10, errorsPerMinute: 14 },
  });
  expect(process!.reactors.timers).toMatchObject({ done: 5, perMinute: 5, errorsPerMinute: 7 });
});

it("an unavailable store fails no caller, and the report is sent again when the store is back", async () => {
  let away = true;
  const gone = new TapeError("TAPE_STORE_UNREACHABLE", "away");
  const { clock, store, events, reporter } = await setReporter(
    () => busyWork,
    listening((send) => (away ? Promise.reject(gone) : send())),
  );
  reporter.begin();
  reporter.begin();
  await clock.elapse(20_000);
  expect(await reportsIn(store)).toEqual([]);
  expect(events).toEqual(["process.report_failed", "process.report_failed"]);
  away = false;
  await clock.elapse(15_000);
  expect(await reportsIn(store)).toHaveLength(1);
  away = true;
  await reporter.end();
  await reporter.end();
});

it("a process without permission to report tries once and never again", async () => {
  let attempts = 0;
  const { clock, reporter } = await setReporter(
    () => busyWork,
    listening(async () => {
      attempts++;
      throw new TapeError("TAPE_FORBIDDEN", "a reader's credential");
    }),
  );
  reporter.begin();
  await clock.elapse(120_000);
  expect(attempts).toBe(1);
});

it("a store that hangs delays closing by two seconds at most", async () => {
  const { clock, reporter } = await setReporter(
    () => busyWork,
    listening(() => new Promise(() => {})),
  );
  reporter.begin();
  await clock.elapse(5_000);
  let over = false;
  const ending = reporter.end().then(() => {
    over = true;
  });
  await clock.elapse(1_900);
  expect(over).toBe(false);
  await clock.elapse(200);
  await ending;
  expect(over).toBe(true);
});

it("a process with nothing left to report removes itself, and reports nothing after its end", async () => {
  let work = busyWork;
  const sent: unknown[] = [];
  const { clock, store, reporter } = await setReporter(
    () => work,
    listening((send, report) => {
      sent.push(typeof report);
      return send();
    }),
  );
  reporter.begin();
  await clock.elapse(1_001);
  work = { ...busyWork, singletons: [] };
  await clock.elapse(31_000);
  expect(sent).toEqual(["object", "string"]);
  expect(await reportsIn(store)).toEqual([]);
  work = busyWork;
  await reporter.end();
  await clock.elapse(60_000);
  reporter.begin();
  await clock.elapse(60_000);
  expect(sent).toHaveLength(2);
});

it("a drained worker has nothing to report", async () => {
  const { clock, store, app } = await setStage();
  const one = await app("one");
  const worker = one.worker(noRunner);
  await clock.elapse(1_001);
  expect(await reportsIn(store)).toHaveLength(1);
  const draining = worker.drain();
  await clock.elapse(1_000);
  await draining;
  await clock.elapse(15_000);
  expect(await reportsIn(store)).toEqual([]);
});

it("a change during a report is reported soon, and the reports after it come once in 15 s", async () => {
  const reportedAt: number[] = [];
  let elapsed = (): number => 0;
  let subject: ProcessReporter | undefined;
  const { clock, store } = await setStage();
  const activity = {
    stats: [],
    singletons: [{ name: "s", state: "standby" }],
    driving: 0,
  } as unknown as ProcessActivity;
  const intake: IntakeOps = {
    ...store.intake,
    reportProcess: async () => {
      reportedAt.push(elapsed());
      if (reportedAt.length <= 2) subject!.soon(); // while the report is under way
    },
  };
  const identity = { owner: "o", label: "o" } as never;
  const deps = { store: { ...store, intake }, tenant, identity, clock, log: () => {} };
  const reporter = new ProcessReporter(deps, () => activity);
  subject = reporter;
  const from = clock.mono();
  elapsed = () => Math.round((clock.mono() - from) / 1_000);
  reporter.begin();
  await clock.elapse(60_500);
  expect(reportedAt).toEqual([1, 2, 3, 18, 33, 48]);
  await reporter.end();
});
