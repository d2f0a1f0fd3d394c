import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { settled } from "../../testkit/clock.ts";
import { type Process, type Stage, seeds, stage, tenant } from "./stage.ts";

const go = gate<string>("go");
const flow = (name: string, run: (tape: TapeContext, input: never) => unknown): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;
const waiting = (s: Stage, p: Process, id: string) => p.until(async () => (await s.run(id)).status === "WAITING");
const send = (s: Stage, id: string, value: unknown, more: object = {}) =>
  s.store.intake.signal(tenant, id, { name: "go", value, ...more });

describe("signals", () => {
  it("arrive in order, before or after the gate; a repeated key counts once", async () => {
    const s = await stage();
    const three = flow("three", async (tape) => {
      await tape.sleep("1s");
      return [await tape.gate(go), await tape.gate(go), await tape.gate(go)].map((a) => "value" in a && a.value);
    });
    const p = s.process([three]);
    const id = await p.start(three);
    await waiting(s, p, id);
    await send(s, id, 1, { key: "k" });
    expect(await send(s, id, "again", { key: "k" })).toMatchObject({ duplicate: true });
    await send(s, id, 2);
    await s.clock.elapse(1_000);
    await waiting(s, p, id);
    await send(s, id, 3);
    expect((await p.over(id)).outcome).toEqual([1, 2, 3]);
    await expect(send(s, id, 4)).rejects.toMatchObject({ code: "TAPE_RUN_ENDED" });
  });

  it("are never lost while the run parks, in 1 000 seeds", async () => {
    const s = await stage();
    const wait = flow("wait", async (tape) => {
      await tape.step("a", () => 1);
      return (await tape.gate(go)) && "done";
    });
    // Some reads of the inbox return late, with the state at their start.
    let late = 0;
    const slow: Store = {
      ...s.store,
      read: {
        ...s.store.read,
        async journal(...args) {
          const records = await s.store.read.journal(...args);
          if (args[2]?.inbox === true) await settled(late);
          return records;
        },
      },
    };
    const p = s.process([wait], { store: slow });
    let raced = 0;
    for (let seed = 1; seed <= seeds(1_000); seed++) {
      const random = seededRandom(seed);
      const id = await p.start(wait);
      const turns = random.int(14);
      late = random.int(4) === 0 ? random.int(8) : 0;
      await settled(turns);
      const { status } = await s.run(id);
      if (status === "RUNNING") raced++;
      await send(s, id, seed);
      // If the holder still has the run, no reactor is needed; otherwise the note makes the run RUNNABLE.
      for (let k = 0; k < 60 && (await s.run(id)).endedAt === null; k++) {
        await settled(1);
        if ((await s.run(id)).status === "RUNNABLE") await p.worker.runOnce(10);
      }
      expect((await s.run(id)).status, `seed ${seed}, ${turns} turns`).toBe("COMPLETED");
    }
    expect(raced).toBeGreaterThan(seeds(100));
    expect(raced).toBeLessThan(seeds(990));
  }, 60_000);

  it("are found by the next renewal if a wake hint was lost", async () => {
    const s = await stage();
    let free = (): void => {};
    const long = flow("long", async (tape) => {
      const body = tape.step("body", ({ abortSignal }) => {
        abortSignal.addEventListener("abort", () => free());
        return new Promise<void>((resolve) => {
          free = resolve;
        });
      });
      await body;
    });
    const p = s.process([long], { store: { ...s.store, onWake: () => () => {} } });
    const id = await p.start(long);
    await settled(5);
    await s.store.intake.cancel(tenant, id, { reason: "enough" });
    await s.clock.elapse(25_000);
    expect((await s.run(id)).status).toBe("CANCELLED");
  });

  it("a gate times out on time, not before", async () => {
    const s = await stage();
    const timed = flow("timed", (tape) => tape.gate(go, { timeout: "10s" }));
    const p = s.process([timed]);
    const id = await p.start(timed);
    await waiting(s, p, id);
    await s.clock.elapse(8_900);
    await p.reactors();
    expect((await s.run(id)).status).toBe("WAITING");
    await s.clock.elapse(1_050);
    await p.reactors();
    expect((await s.run(id)).endedAt).toBeNull();
    await s.clock.elapse(51);
    expect((await p.over(id)).outcome).toEqual({ status: "timeout" });
  });

  it("a bound gate accepts a signal for its call, or an unbound one while it is open", async () => {
    const s = await stage();
    const pay = effect("pay", (a: { n: number }) => a.n, { semantics: "idempotent" });
    const bound = flow("bound", async (tape) => {
      await tape.sleep("1s");
      return tape.gate(go, { binds: pay.with({ n: 1 }) });
    });
    const p = s.process(createRunner({ workflows: [bound], effects: [pay] }));
    const ids = [await p.start(bound), await p.start(bound), await p.start(bound)] as const;
    for (const id of ids) await waiting(s, p, id);
    await send(s, ids[0], "before, without a binding");
    await send(s, ids[0], "for another call", { binds: pay.with({ n: 2 }).hash });
    await send(s, ids[1], "for this call", { binds: pay.with({ n: 1 }).hash });
    await s.clock.elapse(1_001);
    for (const id of [ids[0], ids[2]]) {
      await p.until(async () => (await s.kinds(id)).includes("gate.opened"));
      await waiting(s, p, id);
    }
    await send(s, ids[0], "another again", { binds: pay.with({ n: 2 }).hash });
    for (let k = 0; k < 5; k++) await p.reactors().then(() => settled(10));
    expect((await s.run(ids[0])).status).toBe("WAITING");
    await send(s, ids[2], "while it is open");
    expect((await p.over(ids[1])).outcome).toMatchObject({ value: "for this call" });
    expect((await p.over(ids[2])).outcome).toMatchObject({ value: "while it is open" });
  });
});

describe("cancellation", () => {
  it("rejects waits with TAPE_CANCELLED, aborts bodies, and ends the run as CANCELLED", async () => {
    const s = await stage();
    const seen: string[] = [];
    const both = flow("both", async (tape) => {
      const body = tape.step(
        "body",
        ({ abortSignal }) =>
          new Promise<void>((resolve) => {
            abortSignal.addEventListener("abort", () => {
              seen.push("aborted");
              resolve();
            });
          }),
      );
      await tape.gate(go).catch((error: { code: string }) => seen.push(error.code));
      await tape.step("after", () => seen.push("never")).catch((error: { code: string }) => seen.push(error.code));
      await body;
      return "ignored";
    });
    const p = s.process([both]);
    const id = await p.start(both);
    await p.until(async () => (await s.kinds(id)).includes("gate.opened"));
    await s.store.intake.cancel(tenant, id, { reason: "enough" });
    expect((await p.over(id)).status).toBe("CANCELLED");
    expect(seen.toSorted()).toEqual(["TAPE_CANCELLED", "TAPE_CANCELLED", "aborted"]);
  });

  it("lets no intent enter the journal after the cancel note, in 150 seeds", async () => {
    const s = await stage();
    const world: string[] = [];
    const book = effect("book", (a: { n: number }, fx) => void world.push(`${fx.key} ${a.n}`), {
      compensate: () => {},
    });
    const many = flow("many", async (tape) => {
      for (let n = 0; n < 10; n++) await tape.effect(book.with({ n }));
    });
    const p = s.process(createRunner({ workflows: [many], effects: [book] }));
    let during = 0;
    for (let seed = 1; seed <= seeds(150); seed++) {
      const id = await p.start(many);
      await settled(seededRandom(seed).int(40));
      const accepted = await s.store.intake.cancel(tenant, id, { reason: "x" }).then(
        () => true,
        () => false,
      );
      if (!accepted) continue;
      const { status } = await p.over(id);
      expect(["CANCELLED", "COMPENSATED", "COMPLETED"]).toContain(status);
      if (status === "COMPLETED") continue;
      during++;
      const records = await s.records(id);
      const taken = records.findIndex(({ kind }) => kind === "notes.taken");
      const intents = records.map(({ kind }, k) => (kind === "effect.intended" ? k : -1)).filter((k) => k >= 0);
      expect(Math.max(-1, ...intents), `seed ${seed}`).toBeLessThan(taken);
      const rows = await s.store.read.effects(tenant, { run: id });
      expect(rows.every(({ status: is }) => ["CONFIRMED", "COMPENSATED"].includes(is))).toBe(true);
      expect(world.filter((line) => line.startsWith(`${id}:`))).toHaveLength(intents.length);
    }
    expect(during).toBeGreaterThan(seeds(50));
  }, 60_000);

  it("settles and compensates an effect that is confirmed after it", async () => {
    const s = await stage();
    const world: string[] = [];
    let respond = (): void => {};
    const slow = effect(
      "slow",
      () =>
        new Promise<string>((resolve) => {
          world.push("sent");
          respond = () => resolve("r");
        }),
      { compensate: (_a, result) => void world.push(`reversed ${result}`) },
    );
    const run = flow("run", (tape) => tape.effect(slow.with(null)));
    const p = s.process(createRunner({ workflows: [run], effects: [slow] }));
    const id = await p.start(run);
    await p.until(() => world.length > 0);
    await s.store.intake.cancel(tenant, id, { reason: "x" });
    await p.until(async () => (await s.kinds(id)).includes("notes.taken"));
    await settled(10);
    respond();
    expect((await p.over(id)).status).toBe("COMPENSATED");
    expect(world).toEqual(["sent", "reversed r"]);
  });

  it("withdraws an effect that waits for its next attempt", async () => {
    const s = await stage();
    let sent = 0;
    const { NotSent } = await import("../../src/sdk/outcomes.ts");
    const busy = effect("busy", () => Promise.reject(new NotSent(`${++sent}`)), {
      compensate: () => {},
      retry: { attempts: 9, base: "1h", cap: "1h" },
    });
    const run = flow("run", (tape) => tape.effect(busy.with(null)));
    const p = s.process(createRunner({ workflows: [run], effects: [busy] }));
    const id = await p.start(run);
    await settled(20);
    await s.store.intake.cancel(tenant, id, { reason: "x" });
    expect((await p.over(id)).status).toBe("CANCELLED");
    expect(sent).toBe(1);
    expect((await s.store.read.effects(tenant, { run: id })).map(({ status }) => status)).toEqual(["WITHDRAWN"]);
  });
});

describe("children", () => {
  const child = flow("child", async (tape, input) => {
    if (input === "fail") throw new Error("child failed");
    await tape.sleep("1s");
    if (input === "gate") await tape.gate(go);
    return `of ${tape.runId}`;
  });

  it("have derived ids, stable on replay; a result can be read twice; a failure has its cause", async () => {
    const s = await stage();
    const parent = flow("parent", async (tape) => {
      const a = await tape.spawn(child as never, "x" as never);
      const b = await tape.spawn(child as never, "fail" as never);
      const failure = await b.result().catch((error: Error) => `${error.message} | ${(error.cause as Error).message}`);
      return [a.id, await a.result(), await a.result(), failure];
    });
    const p = s.process([parent, child]);
    const id = await p.start(parent, null, { id: "p" });
    await p.until(async () => (await s.kinds(id)).filter((kind) => kind === "child.started").length === 2);
    await waiting(s, p, id);
    p.crash();
    const view = await s.process([parent, child]).over(id);
    expect(view.outcome).toEqual([
      "p.0",
      "of p.0",
      "of p.0",
      expect.stringMatching(/child run p\.1 ended as FAILED \| child failed/),
    ]);
  });

  it("report their outcome to the parent after ENDING, too", async () => {
    const s = await stage();
    const slow = flow("slow", async (tape) => {
      void tape.gate(go);
      await tape.sleep("1s");
      return "kept";
    });
    const parent = flow("parent", async (tape) => (await tape.spawn(slow as never, null as never)).result());
    const p = s.process([parent, slow]);
    const id = await p.start(parent);
    expect((await p.over(id)).outcome).toBe("kept");
  });

  it.each([
    ["fails", "FAILED"],
    ["is cancelled", "CANCELLED"],
    ["returns", "COMPLETED"],
  ])("are cancelled when the parent %s, and it ends only after them", async (how, status) => {
    const s = await stage();
    const parent = flow("parent", async (tape) => {
      const { id } = await tape.spawn(child as never, "gate" as never);
      if (how === "fails") throw new Error(id);
      if (how === "is cancelled") await tape.gate(go);
      return id;
    });
    const p = s.process([parent, child]);
    const id = await p.start(parent);
    await settled(20);
    if (how === "is cancelled") await s.store.intake.cancel(tenant, id, { reason: "x" });
    const view = await p.over(id);
    const kid = await s.run(`${id}.0`);
    expect([view.status, kid.status]).toEqual([status, "CANCELLED"]);
    const parentEnd = (await s.records(id)).at(-1)!;
    const childEnd = (await s.records(kid.id)).at(-1)!;
    expect([parentEnd.kind, childEnd.kind]).toEqual(["run.ended", "run.ended"]);
    expect(parentEnd.at).toBeGreaterThanOrEqual(childEnd.at);
  });
});
