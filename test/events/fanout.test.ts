import { describe, expect, it, onTestFinished } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import { checkpointOf } from "../../src/model/sink-checkpoint.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { calm, type Stage, setStage, tenant } from "../host/stage.ts";
import { finished, WorldSink } from "./world-sink.ts";

const name = "billing";
const checkpointIn = async (store: Store) =>
  checkpointOf((await store.read.lease(tenant, { name: `sink ${name}` }))?.checkpoint);
const stepMs = 300;

/** How many records follow the cursor. */
async function unpassed(store: Store, from: string): Promise<number> {
  let count = 0;
  for (let cursor = from; ; ) {
    const page = await store.read.feed(cursor, undefined, tenant);
    count += page.records.length;
    cursor = page.cursor;
    if (page.records.length === 0 && page.more !== true) return count;
  }
}

async function pass(stage: Stage, ms = stepMs): Promise<void> {
  for (let left = ms; left > 0; left -= 50) {
    await stage.clock.elapse(Math.min(left, 50));
    await calm();
  }
}

describe("a fan-out", () => {
  it("sends an outline of each run, in order, without values, and moves its checkpoint behind it", async () => {
    const stage = await setStage();
    const app = await stage.app("a");
    const sink = new WorldSink();
    const fanout = app.fanouts.start({ name, sink });
    await pass(stage);
    const run = await finished(stage.store);
    await pass(stage);
    expect(sink.kinds()).toEqual(["run.created", "run.ended"]);
    const [created, end] = sink.ledger;
    expect(created).toMatchObject({
      ...{ specversion: "1.0", type: "dev.tape.run.created", subject: run, partitionkey: run, sequence: "0000000001" },
      ...{ tapeepoch: 0, tapetoken: "1", data: { run: { id: run, workflow: "w", root: run, parent: null } } },
    });
    expect(created!.id).toMatch(/^\d+:1:\d+$/);
    expect(created!.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    expect(JSON.stringify(sink.ledger)).not.toContain("secret");
    expect(end!.data.record).toMatchObject({ kind: "run.ended", seq: 4, inbox: false, data: { status: "COMPLETED" } });
    const checkpoint = await checkpointIn(stage.store);
    const rest = await stage.store.read.feed(checkpoint!.cursor!, undefined, tenant);
    expect(rest.records).toEqual([]);
    expect(fanout.view()).toMatchObject({ state: "running", delivered: 2, inFlight: 0, deadLetters: 0, lagMs: 0 });
    await fanout.stop();
    expect(sink.closed).toBe(true);
  });

  it("starts now or at the start, and decides what now is only once", async () => {
    const stage = await setStage();
    const app = await stage.app("a");
    await finished(stage.store);
    const [late, all] = [new WorldSink(), new WorldSink()];
    app.fanouts.start({ name, sink: late });
    app.fanouts.start({ name: "all", sink: all, from: "start", filter: { kinds: ["all"] } });
    await pass(stage);
    expect(late.ledger).toEqual([]);
    expect(all.kinds()).toEqual(expect.arrayContaining(["run.created", "step.done", "run.ended"]));
    const first = (await checkpointIn(stage.store))!.cursor;
    expect(first).not.toBeNull();
    await app.close();
    const run = await finished(stage.store); // between two processes
    const again = new WorldSink();
    (await stage.app("b")).fanouts.start({ name, sink: again });
    await pass(stage);
    expect(again.ledger.map(({ subject }) => subject)).toEqual([run, run]);
  });

  it("keeps the order of a run while its lane waits, and other lanes continue", async () => {
    const stage = await setStage();
    const app = await stage.app("a");
    const sink = new WorldSink(1);
    let down = true;
    let blocked = "";
    sink.judge = (event) => (down && event.subject === blocked ? { later: new Error("503") } : "ok");
    const fanout = app.fanouts.start({ name, sink, lanes: 8 });
    await pass(stage);
    blocked = await finished(stage.store);
    const others = [];
    for (let k = 0; k < 8; k++) others.push(await finished(stage.store));
    await pass(stage);
    const received = new Set(sink.ledger.map(({ subject }) => subject));
    expect(received.has(blocked)).toBe(false);
    expect(received.size).toBeGreaterThan(4); // those that share its lane wait, too
    expect(fanout.view()).toMatchObject({ state: "retrying", lastError: expect.stringContaining("503") });
    const held = await checkpointIn(stage.store);
    expect(await unpassed(stage.store, held!.cursor!)).toBe(4 * 9);
    down = false;
    await pass(stage, 2_000);
    expect(sink.ledger.filter(({ subject }) => subject === blocked).map(({ sequence }) => sequence)).toEqual([
      "0000000001",
      "0000000004",
    ]);
    expect(new Set(sink.ledger.map(({ subject }) => subject)).size).toBe(9);
    expect(fanout.view()).toMatchObject({ state: "running", inFlight: 0 });
  });

  it("waits as long as Retry-After says, and doubles its own pause otherwise", async () => {
    const stage = await setStage();
    const sink = new WorldSink(1);
    sink.judge = () => ({ later: "429", afterMs: 30_000 });
    (await stage.app("a")).fanouts.start({ name, sink, filter: { kinds: ["run.ended"] } });
    await pass(stage);
    await finished(stage.store);
    await pass(stage);
    expect(sink.calls.length).toBe(1);
    await pass(stage, 29_000);
    expect(sink.calls.length).toBe(1);
    await pass(stage, 2_000);
    expect(sink.calls.map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  it("stops reading when its window is full", async () => {
    const stage = await setStage();
    const sink = new WorldSink(1);
    sink.judge = () => ({ later: "down" });
    const fanout = (await stage.app("a")).fanouts.start({ name, sink, window: 10, lanes: 2 });
    await pass(stage);
    for (let k = 0; k < 30; k++) await finished(stage.store);
    let pages = 0;
    const { feed } = stage.store.read;
    const counted: typeof feed = (...args) => {
      pages++;
      return feed(...args);
    };
    Object.assign(stage.store.read, { feed: counted });
    onTestFinished(() => void Object.assign(stage.store.read, { feed }));
    await pass(stage, 5_000);
    expect(fanout.view().inFlight).toBeGreaterThan(5);
    expect(fanout.view().inFlight).toBeLessThanOrEqual(10);
    expect(pages).toBeLessThanOrEqual(3);
    sink.judge = () => "ok";
    await pass(stage, 120_000);
    expect(sink.ledger.length).toBe(60);
  });

  it("sends at most a window of events beyond its checkpoint, and stops within its drain time", async () => {
    const stage = await setStage();
    const sink = new WorldSink(1);
    const app = await stage.app("a");
    const fanout = app.fanouts.start({ name, sink, window: 10, lanes: 2, drain: "2s" });
    await pass(stage);
    const { checkpoint } = stage.store.fenced;
    Object.assign(stage.store.fenced, { checkpoint: () => Promise.reject(new Error("no disk")) });
    onTestFinished(() => void Object.assign(stage.store.fenced, { checkpoint }));
    for (let k = 0; k < 30; k++) await finished(stage.store);
    await pass(stage, 5_000);
    expect(sink.ledger.length).toBeGreaterThan(5);
    expect(sink.ledger.length).toBeLessThanOrEqual(10);
    const stopped = fanout.stop();
    await pass(stage, 3_000);
    await stopped;
    Object.assign(stage.store.fenced, { checkpoint });
    app.fanouts.start({ name, sink, window: 10, lanes: 2 });
    await pass(stage, 10_000);
    expect(new Set(sink.ids()).size).toBe(60);
    expect(sink.ledger.length).toBeLessThanOrEqual(70);
  });

  it("makes what the sink refuses three times a dead letter, and the rest proceeds", async () => {
    const stage = await setStage();
    const sink = new WorldSink();
    let poison = "";
    sink.judge = (event) =>
      event.subject === poison && event.type.endsWith("created") ? { never: "no such field", code: "422" } : "ok";
    const fanout = (await stage.app("a")).fanouts.start({ name, sink, lanes: 1 });
    await pass(stage);
    await finished(stage.store);
    poison = await finished(stage.store);
    await finished(stage.store);
    await pass(stage, 10_000);
    expect(sink.kinds()).toEqual(["run.created", "run.ended", "run.ended", "run.created", "run.ended"]);
    const [letter, ...more] = await stage.store.read.deadLetters(tenant, name);
    expect(more).toEqual([]);
    expect(letter).toMatchObject({ kind: "run.created", code: "422", error: "no such field", inbox: false, seq: 1 });
    expect(letter!.attempts).toBeGreaterThanOrEqual(3);
    expect(fanout.view()).toMatchObject({ deadLetters: 1, inFlight: 0 });
    expect(stage.lines.some(({ level, event }) => level === "error" && event === "sink.dead_letter")).toBe(true);
    // An operator has it sent again, with the same id.
    sink.judge = () => "ok";
    const audit = { by: "ann", reason: "the field exists now" };
    expect(await stage.store.intake.settleLetters(tenant, name, "REPLAY", undefined, audit)).toBe(1);
    await pass(stage, 6_000);
    expect(sink.ledger.at(-1)).toMatchObject({ id: letter!.event, tapereplayed: true });
    expect(await stage.store.read.deadLetters(tenant, name)).toEqual([]);
    expect((await stage.store.read.deadLetters(tenant, name, { state: "SENT" })).length).toBe(1);
  });

  it("an event that is larger than the sink takes is a dead letter at once", async () => {
    const stage = await setStage();
    const sink = new WorldSink(10, 2_000);
    (await stage.app("a")).fanouts.start({ name, sink, payload: "values" });
    await pass(stage);
    const large = await finished(stage.store, 1, tenant, { input: "x".repeat(5_000) });
    await pass(stage);
    expect(sink.kinds()).toEqual(["run.ended"]);
    const [letter] = await stage.store.read.deadLetters(tenant, name);
    expect(letter).toMatchObject({ kind: "run.created", code: "too_large", attempts: 0 });
    expect(large).toBe(sink.ledger[0]!.subject);
  });

  it("a sink that says gone is paused, until an operator resumes it; nothing is lost", async () => {
    const stage = await setStage();
    const app = await stage.app("a");
    const sink = new WorldSink();
    sink.judge = () => ({ pause: "410 Gone" });
    const fanout = app.fanouts.start({ name, sink });
    await pass(stage);
    const run = await finished(stage.store);
    await pass(stage, 3_000);
    expect(fanout.view()).toMatchObject({ state: "paused", paused: { reason: "410 Gone" } });
    expect((await checkpointIn(stage.store))?.paused).toMatchObject({ reason: "410 Gone" });
    expect(stage.lines.some(({ level, event }) => level === "error" && event === "sink.paused")).toBe(true);
    const calls = sink.calls.length;
    await finished(stage.store);
    await pass(stage, 60_000);
    expect(sink.calls.length).toBe(calls);
    sink.judge = () => "ok";
    await app.sinks.resume(name, { by: "ann", reason: "it is back" });
    await pass(stage, 20_000);
    expect(sink.ledger.map(({ subject }) => subject).slice(0, 2)).toEqual([run, run]);
    expect(sink.kinds().slice(2).toSorted()).toEqual(["operator.action", "run.created", "run.ended"]);
    expect(fanout.view().state).toBe("running");
  });

  it("after a restore it announces the restore, then repeats from its checkpoint", async () => {
    const stage = await setStage();
    const sink = new WorldSink();
    (await stage.app("a")).fanouts.start({ name, sink });
    await pass(stage);
    await finished(stage.store);
    await pass(stage);
    await stage.store.claim.restored("a backup was restored");
    const run = await finished(stage.store);
    await pass(stage, 60_000);
    const at = sink.ids().indexOf("restored:1");
    expect(sink.ledger[at]).toMatchObject({ type: "dev.tape.store.restored", data: { storeEpoch: 1 } });
    // Until its lease is known to be lost it continues under the old epoch; afterwards everything comes again.
    expect(sink.ledger.slice(0, at).every(({ tapeepoch }) => tapeepoch === 0)).toBe(true);
    expect(sink.ledger.slice(at + 1).map(({ subject, tapeepoch }) => [subject, tapeepoch])).toEqual([
      [run, 1],
      [run, 1],
    ]);
  });

  it("an idle fan-out writes nothing at all", async () => {
    const stage = await setStage();
    const sink = new WorldSink();
    (await stage.app("a")).fanouts.start({ name, sink, filter: { kinds: ["all"] } });
    await pass(stage);
    await finished(stage.store);
    await pass(stage, 2_000);
    const before = await stage.store.read.frontier();
    const checkpoint = await checkpointIn(stage.store);
    for (let k = 0; k < 10; k++) await stage.clock.elapse(60_000);
    await calm();
    expect(await stage.store.read.frontier()).toBe(before);
    expect(await checkpointIn(stage.store)).toEqual(checkpoint);
  });

  it("a standby continues from the checkpoint of a process that died", async () => {
    const stage = await setStage();
    const [dying, standby] = [new WorldSink(), new WorldSink()];
    let dead = false;
    const gone = () => Promise.reject(new TapeError("TAPE_STORE_UNREACHABLE", "the process is dead"));
    const wrapped = (store: Store): Store => ({
      ...store,
      fenced: {
        ...store.fenced,
        checkpoint: (...args) => (dead ? gone() : store.fenced.checkpoint(...args)),
      },
      claim: {
        ...store.claim,
        renew: (...args) => (dead ? gone() : store.claim.renew(...args)),
        acquire: (...args) => (dead ? gone() : store.claim.acquire(...args)),
      },
    });
    const a = await stage.app("a", { store: wrapped(stage.store) });
    a.fanouts.start({ name, sink: dying });
    await pass(stage);
    const first = await finished(stage.store);
    await pass(stage);
    dead = true;
    const second = await finished(stage.store);
    await pass(stage); // received, but its checkpoint is lost
    expect(dying.ledger.length).toBe(4);
    (await stage.app("b")).fanouts.start({ name, sink: standby });
    await pass(stage, 40_000);
    expect(standby.ledger.map(({ subject }) => subject)).toEqual([second, second]);
    expect(standby.calls.every(({ token }) => token > dying.calls[0]!.token)).toBe(true);
    expect(first).not.toBe(second);
  }, 20_000);
});
