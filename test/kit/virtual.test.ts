import { strict as assert } from "node:assert";
import { describe, it } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { WorldLedger } from "../../testkit/kit/world.ts";

describe("virtual time", () => {
  it("runs events in order of time, then of calls", async () => {
    const time = new VirtualTime();
    const fired: string[] = [];
    time.after(20, () => fired.push("c"));
    time.after(10, () => fired.push("a"));
    time.after(10, () => fired.push("b"));
    time.after(15, () => fired.push("never"))();
    time.immediate(() => fired.push("soon"));
    await time.elapse(30);
    assert.deepEqual(fired, ["soon", "a", "b", "c"]);
    assert.equal(time.now, 30);
  });

  it("throws when no event is left, and when events never stop", async () => {
    const time = new VirtualTime();
    await assert.rejects(time.during(new Promise(() => {})), /wait forever/);
    const spin = (): void => time.immediate(spin);
    spin();
    await assert.rejects(time.elapse(1), /stands still/);
  });
});

describe("a Tape in virtual time", () => {
  const world = new WorldLedger();
  const mail = effect("mail", (to: string, fx) => world.applyOnce("mail", fx, to, () => `sent to ${to}`), {
    semantics: "idempotent",
  });
  const yes = gate<boolean>("yes");
  const reminder = workflow("reminder", async (tape, to: string) => {
    await tape.sleep("10d");
    const answer = await tape.gate(yes, { timeout: "5d" });
    return { answer, mail: await tape.effect(mail.with(to)), at: tape.now() };
  });
  const runner = createRunner({ workflows: [reminder], effects: [mail] });

  it("elapses days in no time, to the millisecond, and takes a signal in between", async () => {
    await using tape = await VirtualTape.open({ runner });
    const run = await tape.start(reminder, "ada", { id: "elapsed" });
    const eventsBefore = tape.time.events;
    const from = tape.time.wall();
    await tape.elapse(12 * 86_400_000);
    assert.equal(tape.time.wall() - from, 12 * 86_400_000);
    assert.equal((await tape.time.during(tape.tape.runs.get(run.id)))?.status, "WAITING");
    assert.ok(tape.time.events - eventsBefore < 5_000); // polling through twelve days took millions
    await tape.signal(run.id, yes, true);
    assert.deepEqual((await tape.result(run)).answer, { status: "received", value: true });
    world.clear();
  });

  it("sleeps for days in no time, and never ends a sleep early", async () => {
    await using tape = await VirtualTape.open({ runner });
    const eventsBefore = tape.time.events;
    const run = await tape.start(reminder, "ada", { id: "r" });
    const result = await tape.result(run);
    assert.deepEqual(result.answer, { status: "timeout" });
    assert.ok(tape.time.now >= 15 * 86_400_000, String(tape.time.now));
    assert.ok(tape.time.now < 15 * 86_400_000 + 60_000, String(tape.time.now));
    assert.ok(tape.time.events - eventsBefore < 1_000, `${tape.time.events - eventsBefore} events`);
    assert.equal(world.applied("mail").length, 1);
  });

  it("writes the same feed for the same seed", async () => {
    const feed = async (): Promise<string> => {
      world.clear();
      await using tape = await VirtualTape.open({ runner, seed: 7 });
      const run = await tape.start(reminder, "ada");
      await tape.elapse(1_000);
      await tape.signal(run.id, yes, true);
      await tape.settle();
      const { records } = await tape.store.read.feed(undefined);
      return JSON.stringify(records, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value));
    };
    const first = await feed();
    assert.ok(first.length > 1_000);
    assert.equal(first, await feed());
  });
});
