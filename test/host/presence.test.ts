import { expect, it } from "vitest";
import { type ProcessActivity, ProcessReporter } from "../../src/host/process-reporter.ts";
import { TapeError } from "../../src/model/errors.ts";
import { ReactorLoop } from "../../src/reactor/loop.ts";
import type { Reactor } from "../../src/reactor/reactor.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { IntakeOps, ProcessReport, Store } from "../../src/store/contract/store.ts";
import { noRunner, setStage, tenant, untilAborted } from "./stage.ts";

interface Body {
  readonly startedAt: number;
  readonly driving: number;
  readonly reactors: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly singletons: readonly { readonly name: string; readonly state: string; readonly token?: string }[];
}

const told = async (store: Store) =>
  (await store.read.processes(tenant)).map(({ owner, body }) => ({ owner, ...(body as Body) }));

/** A store that hands every report and farewell to `say`, which sends it on or not. */
function listening(say: (send: () => Promise<void>, report: ProcessReport | string) => Promise<void>) {
  return (store: Store): Store => {
    const report: IntakeOps["reportProcess"] = (of, one) => say(() => store.intake.reportProcess(of, one), one);
    const unreport: IntakeOps["removeProcess"] = (of, owner) => say(() => store.intake.removeProcess(of, owner), owner);
    return { ...store, intake: { ...store.intake, reportProcess: report, removeProcess: unreport } };
  };
}

it("of two apps with one singleton both are listed, one as its holder, until they close", async () => {
  const { clock, store, app } = await setStage();
  const [one, two] = [await app("one"), await app("two")];
  await one.singleton("sweeper", ({ abortSignal }) => untilAborted(abortSignal));
  await clock.elapse(200_000);
  await two.singleton("sweeper", ({ abortSignal }) => untilAborted(abortSignal));
  await clock.elapse(16_000);
  const lease = (await store.read.lease(tenant, { name: "sweeper" }))!;
  const processes = await told(store);
  expect(processes.map(({ singletons }) => singletons[0]?.state).sort()).toEqual(["holder", "standby"]);
  const holder = processes.find(({ owner }) => owner === lease.owner)!;
  expect(holder.singletons).toEqual([{ name: "sweeper", state: "holder", token: String(lease.token) }]);
  expect(holder.reactors).toEqual({});
  const closing = one.close();
  await clock.elapse(1_000);
  await closing;
  expect((await told(store)).map(({ owner }) => owner)).toEqual(
    processes.map(({ owner }) => owner).filter((owner) => owner !== lease.owner),
  );
});

it("an app that drives runs tells what its reactors do; one that does nothing, or is told to be silent, says nothing", async () => {
  const said: unknown[] = [];
  const { clock, store, app } = await setStage({
    wrap: listening((send, report) => {
      said.push(report);
      return send();
    }),
  });
  const held = Promise.withResolvers<void>();
  const slow = workflow("slow", async (tape) => tape.step("wait", () => held.promise));
  const runner = createRunner({ workflows: [slow] });
  await app("reads");
  await app("silent", { runner, work: true, report: false });
  await clock.elapse(60_000);
  expect(said).toEqual([]);
  const works = await app("works", { runner, work: true });
  await works.start(slow, undefined);
  await clock.elapse(900);
  expect(said).toEqual([]);
  await clock.elapse(200);
  expect(said).toHaveLength(1);
  const [process] = await told(store);
  expect(process).toMatchObject({ driving: 1, singletons: [], startedAt: clock.wall() - 1_100 });
  expect(Object.keys(process!.reactors).sort()).toEqual(
    ["compensation", "outbox", "reconciler", "recovery", "timers"].sort(),
  );
  held.resolve();
  await clock.elapse(60_000);
  expect(said).toHaveLength(5); // every 15 s, and nothing besides
  expect(await told(store)).toMatchObject([{ driving: 0, workflows: ["slow"] }]);
});

/** A presence of its own over what `look` finds. */
async function alone(look: () => ProcessActivity, wrap?: (store: Store) => Store) {
  const { clock, store } = await setStage(wrap === undefined ? {} : { wrap });
  const identity = { owner: "replica/1", label: "replica" };
  const events: string[] = [];
  const log = (_level: string, event: string) => void events.push(event);
  return { clock, store, events, presence: new ProcessReporter({ store, tenant, identity, clock, log }, look) };
}
const busyWork: ProcessActivity = {
  stats: [],
  singletons: [{ name: "s", state: "standby" } as never],
  driving: 0,
  workflows: [],
  effects: [],
};

it("rates are of the last minute: what failed long ago is counted, but no error of now", async () => {
  let loop: ReactorLoop | undefined;
  const { clock, store, presence } = await alone(() => ({
    stats: loop === undefined ? [] : [loop.stats],
    singletons: [],
    driving: 0,
    workflows: [],
    effects: [],
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
  presence.begin();
  await clock.elapse(1_001);
  const { faults, errorsPerMinute } = (await told(store))[0]!.reactors.mine!;
  expect(faults).toBeGreaterThan(0);
  expect(errorsPerMinute).toBe(faults);
  failing = false;
  await clock.elapse(30_000);
  expect((await told(store))[0]!.reactors.mine).toMatchObject({ faults: faults! + 0, lagMs: 7 });
  expect((await told(store))[0]!.reactors.mine!.errorsPerMinute).toBe(faults);
  await clock.elapse(60_000);
  expect((await told(store))[0]!.reactors.mine).toMatchObject({ faults, errorsPerMinute: 0, perMinute: 0 });
  const stopping = [loop.stop(), presence.end()];
  await clock.elapse(5_000);
  await Promise.all(stopping);
  expect(await told(store)).toEqual([]);
});

it("counts of several loops are added up by reactor", async () => {
  const tally = { polls: 1, faults: 1, busy: 2, unserved: 3, found: 4, done: 5, failed: 6, lagMs: 7 };
  const { clock, store, presence } = await alone(() => ({
    stats: [{ outbox: tally }, { outbox: { ...tally, lagMs: 9 }, timers: tally }],
    singletons: [],
    driving: 3,
    workflows: [],
    effects: [],
  }));
  presence.begin();
  await clock.elapse(1_001);
  const [process] = await told(store);
  expect(process!.reactors.outbox).toEqual({
    ...{ found: 8, done: 10, failed: 12, faults: 2, busy: 4, unserved: 6, lagMs: 9 },
    ...{ perMinute: 10, errorsPerMinute: 14 },
  });
  expect(process!.reactors.timers).toMatchObject({ done: 5, perMinute: 5, errorsPerMinute: 7 });
});

it("a store that is away is nobody's error, and is told again when it is back", async () => {
  let away = true;
  const gone = new TapeError("TAPE_STORE_UNREACHABLE", "away");
  const { clock, store, events, presence } = await alone(
    () => busyWork,
    listening((send) => (away ? Promise.reject(gone) : send())),
  );
  presence.begin();
  presence.begin();
  await clock.elapse(20_000);
  expect(await told(store)).toEqual([]);
  expect(events).toEqual(["process.report_failed", "process.report_failed"]);
  away = false;
  await clock.elapse(15_000);
  expect(await told(store)).toHaveLength(1);
  away = true;
  await presence.end();
  await presence.end();
});

it("whoever may not report asks once and never again", async () => {
  let asked = 0;
  const { clock, presence } = await alone(
    () => busyWork,
    listening(async () => {
      asked++;
      throw new TapeError("TAPE_FORBIDDEN", "a reader's credential");
    }),
  );
  presence.begin();
  await clock.elapse(120_000);
  expect(asked).toBe(1);
});

it("a store that hangs keeps nobody from closing for longer than two seconds", async () => {
  const { clock, presence } = await alone(
    () => busyWork,
    listening(() => new Promise(() => {})),
  );
  presence.begin();
  await clock.elapse(5_000);
  let over = false;
  const ending = presence.end().then(() => {
    over = true;
  });
  await clock.elapse(1_900);
  expect(over).toBe(false);
  await clock.elapse(200);
  await ending;
  expect(over).toBe(true);
});

it("who has nothing left to tell leaves, and after the end nothing is said", async () => {
  let work = busyWork;
  const said: unknown[] = [];
  const { clock, store, presence } = await alone(
    () => work,
    listening((send, report) => {
      said.push(typeof report);
      return send();
    }),
  );
  presence.begin();
  await clock.elapse(1_001);
  work = { ...busyWork, singletons: [] };
  await clock.elapse(31_000);
  expect(said).toEqual(["object", "string"]);
  expect(await told(store)).toEqual([]);
  work = busyWork;
  await presence.end();
  await clock.elapse(60_000);
  presence.begin();
  await clock.elapse(60_000);
  expect(said).toHaveLength(2);
});

it("a worker that was drained has nothing to tell", async () => {
  const { clock, store, app } = await setStage();
  const one = await app("one");
  const worker = one.worker(noRunner);
  await clock.elapse(1_001);
  expect(await told(store)).toHaveLength(1);
  const draining = worker.drain();
  await clock.elapse(1_000);
  await draining;
  await clock.elapse(15_000);
  expect(await told(store)).toEqual([]);
});
