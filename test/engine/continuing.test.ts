import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { foldHistory } from "../../src/engine/replay/history.ts";
import { Talk } from "../../src/host/talk.ts";
import { isTapeError } from "../../src/model/errors.ts";
import { laneRoom } from "../../src/model/record-context.ts";
import type { JournalRecord } from "../../src/model/records.ts";
import { fork, planFork } from "../../src/operator/fork.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { object } from "../../src/sdk/object.ts";
import { queue } from "../../src/sdk/queue.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { type Process, type Stage, stage, tenant } from "./stage.ts";

const go = gate<string>("go");
const flow = (name: string, run: (tape: TapeContext<never>, input: never) => unknown, more: object = {}): AnyWorkflow =>
  workflow(name, run as never, more as never) as unknown as AnyWorkflow;
const waiting = (s: Stage, p: Process, id: string) => p.until(async () => (await s.run(id)).status === "WAITING");
const send = (s: Stage, id: string, value: unknown) => s.store.intake.signal(tenant, id, { name: "go", value });
const continued = (records: readonly JournalRecord[]) =>
  records.flatMap((record) => (record.kind === "run.continued" ? [record] : []));
const codeOf = (error: unknown) => (isTapeError(error) ? error.code : String(error));

describe("a run that continues as new", () => {
  it("starts its function again with the input, in the same run and term", async () => {
    const s = await stage();
    const count = flow("count", async (tape, n: number) => {
      await tape.step("work", () => n);
      return n === 5 ? `done at ${n}` : tape.continueAsNew((n + 1) as never);
    });
    const p = s.process([count]);
    const id = await p.start(count, 1);
    expect((await p.over(id)).outcome).toBe("done at 5");
    const records = await s.records(id);
    expect(continued(records).map(({ data }) => [data.generation, data.pos, data.input])).toEqual([
      [2, laneRoom, 2],
      [3, 2 * laneRoom, 3],
      [4, 3 * laneRoom, 4],
      [5, 4 * laneRoom, 5],
    ]);
    expect(new Set(records.map(({ token }) => token)).size).toBeLessThan(3);
    const { begins } = (await s.run(id)).lease;
    expect(begins).toBe(continued(records).at(-1)!.seq);
  });

  it("keeps positions, keys and random values unique over generations", async () => {
    const s = await stage();
    const keys: string[] = [];
    const pay = effect(
      "pay",
      (n: number, { key }) => {
        keys.push(key);
        return n;
      },
      { semantics: "idempotent" },
    );
    const drawn: unknown[] = [];
    const loop = flow("loop", async (tape, n: number) => {
      await tape.effect(pay.with(1));
      await tape.lane("side", () => tape.effect(pay.with(1)));
      drawn.push(tape.uuid(), tape.random(), await tape.lane("side", async () => tape.uuid()));
      return drawn.length >= 12 ? "over" : tape.continueAsNew(n as never); // the same input each time
    });
    const p = s.process(createRunner({ workflows: [loop], effects: [pay] }));
    const id = await p.start(loop, 1);
    expect((await p.over(id)).outcome).toBe("over");
    expect([keys.length, new Set(keys).size]).toEqual([8, 8]);
    expect(new Set(drawn).size).toBe(drawn.length);
    const effects = await s.store.read.effects(tenant, { run: id });
    expect(effects.map(({ pos }) => pos)).toEqual(effects.map(({ pos }) => pos).sort((a, b) => a - b));
  });

  it("replays only its generation, and the whole journal folds to the same history", async () => {
    const s = await stage();
    const read: number[] = [];
    const loop = flow("loop", async (tape, n: number) => {
      for (let k = 0; k < 20; k++) await tape.step(`s${k}`, () => k);
      const answer = await tape.gate(go);
      if (n === 3) return answer;
      return tape.continueAsNew((n + 1) as never);
    });
    const first = s.process([loop]);
    const id = await first.start(loop, 1);
    for (let n = 1; n < 3; n++) {
      await waiting(s, first, id);
      await send(s, id, `s${n}`);
      await first.until(async () => continued(await s.records(id)).length === n);
    }
    await waiting(s, first, id);
    const journal: typeof s.store.read.journal = async (of, target, page) => {
      const found = await s.store.read.journal(of, target, page);
      if (page?.inbox !== true) read.push(...found.map(({ seq }) => seq));
      return found;
    };
    await send(s, id, "last");
    const second = s.process([loop], { store: { ...s.store, read: { ...s.store.read, journal } } });
    expect((await second.over(id)).outcome).toEqual({ status: "received", value: "last" });
    const records = await s.records(id);
    const notes = await s.notes(id);
    const { seq: begins } = continued(records).at(-1)!;
    expect(read.filter((seq) => seq > 1 && seq < begins)).toEqual([]);
    const tail = [records[0]!, ...records.slice(begins - 1)];
    const [whole, part] = [foldHistory(records, notes), foldHistory(tail, notes)];
    expect({ ...whole, used: undefined }).toEqual({ ...part, used: undefined });
    expect(notes.map((note) => whole.used(note))).toEqual(notes.map((note) => part.used(note)));
  });

  it("carries signals that no gate has taken, in their order, and loses none that arrive meanwhile", async () => {
    const s = await stage();
    const other = gate<string>("other");
    const loop = flow("loop", async (tape, got: string[]) => {
      if (got.length === 0) {
        const answer = await tape.gate(other);
        return tape.continueAsNew([`${answer.status}`] as never);
      }
      const taken = [...got];
      for (let k = 0; k < 2; k++) {
        const answer = await tape.gate(go);
        taken.push(answer.status === "received" ? answer.value : "");
      }
      return taken.length >= 7 ? taken : tape.continueAsNew(taken as never);
    });
    const p = s.process([loop]);
    const id = await p.start(loop, []);
    await waiting(s, p, id);
    for (const value of ["a", "b", "c", "d"]) await send(s, id, value);
    await waiting(s, p, id);
    await s.store.intake.signal(tenant, id, { name: "other", value: "x" });
    await send(s, id, "e");
    await send(s, id, "f");
    expect((await p.over(id)).outcome).toEqual(["received", "a", "b", "c", "d", "e", "f"]);
    const [first] = continued(await s.records(id));
    expect(first!.data.notes).toEqual([1, 2, 3, 4, 6, 7]);
  });

  it("refuses more unused signals than it may carry, and the code can drain them", async () => {
    const s = await stage({ limits: { carriedNotes: 2 } });
    const loop = flow("loop", async (tape, n: number) => {
      if (n > 0) return [n, await tape.gate(go)];
      await tape.gate(gate("start"));
      const refused: string[] = [];
      for (;;) {
        try {
          return await tape.continueAsNew(refused.length as never);
        } catch (error) {
          refused.push(codeOf(error));
          await tape.gate(go);
        }
      }
    });
    const p = s.process([loop]);
    const id = await p.start(loop, 0);
    await waiting(s, p, id);
    for (const value of ["a", "b", "c", "d"]) await send(s, id, value);
    await s.store.intake.signal(tenant, id, { name: "start", value: 1 });
    expect((await p.over(id)).outcome).toEqual([2, { status: "received", value: "c" }]);
  });

  it("waits for effects that lost a race, and withdraws the gates and timers that did", async () => {
    const s = await stage();
    let finish = (): void => {};
    const slow = effect("slow", (_: null) => new Promise<string>((resolve) => (finish = () => resolve("sent"))), {
      semantics: "idempotent",
    });
    const loop = flow("loop", async (tape, n: number) => {
      if (n > 1) return "next";
      await tape.race([
        () => tape.effect(slow.with(null)),
        () => tape.gate(go),
        () => tape.sleep("1h"),
        tape.step("won", () => 1),
      ]);
      return tape.continueAsNew((n + 1) as never);
    });
    const p = s.process(createRunner({ workflows: [loop], effects: [slow] }));
    const id = await p.start(loop, 1);
    await settled(30);
    expect(continued(await s.records(id))).toEqual([]);
    finish();
    expect((await p.over(id)).outcome).toBe("next");
    const [gates, timers] = [
      await s.store.read.gates(tenant, { run: id }),
      await s.store.read.timers(tenant, { run: id }),
    ];
    expect([gates.map(({ status }) => status), timers.map(({ status }) => status)]).toEqual([
      ["WITHDRAWN"],
      ["CANCELLED"],
    ]);
    expect((await s.store.read.effects(tenant, { run: id })).map(({ status }) => status)).toEqual(["CONFIRMED"]);
  });

  it("is refused with TAPE_OPEN_CHILDREN while a child lives, and replays the refusal", async () => {
    const s = await stage();
    const child = flow("child", (tape) => tape.gate(go));
    const parent = flow("parent", async (tape, seen: string[]) => {
      if (seen.length > 0) return seen;
      const started = await tape.spawn(child as never, null);
      try {
        return await tape.continueAsNew(["no"] as never);
      } catch (error) {
        await started.result();
        return tape.continueAsNew([codeOf(error)] as never);
      }
    });
    const p = s.process([child, parent]);
    const id = await p.start(parent, []);
    await waiting(s, p, id);
    p.crash();
    await s.clock.elapse(31_000);
    const q = s.process([child, parent]);
    await send(s, `${id}.0`, "end");
    expect((await q.over(id)).outcome).toEqual(["TAPE_OPEN_CHILDREN"]);
  });

  it("leaves a cancellation and signals that arrive with its last append to the next generation", async () => {
    const s = await stage();
    const seen = new Set<unknown>();
    const loop = flow("loop", async (tape, n: number) => {
      if (n === 1) return tape.continueAsNew(2 as never);
      const answer = await tape.gate(go);
      seen.add("value" in answer && answer.value);
      return tape.gate(go).catch((error: unknown) => seen.add(codeOf(error)));
    });
    const append: typeof s.store.fenced.append = async (fence, entry) => {
      if (entry.records.some(({ kind }) => kind === "run.continued")) await send(s, id, "in time");
      return s.store.fenced.append(fence, entry);
    };
    const p = s.process([loop], { store: { ...s.store, fenced: { ...s.store.fenced, append } } });
    const id = "meanwhile";
    await p.start(loop, 1, { id });
    await waiting(s, p, id);
    await s.store.intake.cancel(tenant, id, { reason: "enough" });
    expect([(await p.over(id)).status, [...seen]]).toEqual(["CANCELLED", ["in time", "TAPE_CANCELLED"]]);
  });

  it("keeps its deadline, its limit on stalls and the names that it has published", async () => {
    const s = await stage({ limits: { publishedNames: 2 } });
    const loop = flow(
      "loop",
      async (tape, n: number) => {
        tape.publish(`n${Math.min(n, 2)}`, n);
        if (n === 3) {
          try {
            tape.publish("third", 1);
          } catch (error) {
            tape.publish("n1", codeOf(error));
          }
          return tape.gate(go);
        }
        await tape.step("s", () => n);
        return tape.continueAsNew((n + 1) as never);
      },
      { deadline: "1h", maxStall: "20m" },
    );
    const p = s.process([loop]);
    const id = await p.start(loop, 1);
    await waiting(s, p, id);
    const kinds = await s.kinds(id);
    expect(kinds.filter((kind) => kind === "timer.set" || kind === "run.limited")).toEqual([
      "run.limited",
      "timer.set",
    ]);
    const published = await s.store.read.published(tenant, id);
    expect(published.map(({ name, value }) => [name, value])).toEqual([
      ["n1", "TAPE_TOO_LARGE"],
      ["n2", 3],
    ]);
    await s.clock.elapse(3_600_000);
    expect((await p.over(id)).status).toBe("CANCELLED");
  });

  it("checks the input by the schema, records the refusal, and gives it to the code", async () => {
    const s = await stage();
    const input = {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: (value: unknown) =>
          typeof value === "number" ? { value: value * 10 } : { issues: [{ message: "not a number" }] },
      },
    };
    const loop = flow(
      "loop",
      async (tape, n: number) => {
        if (n >= 100) return n;
        const refused = await tape.continueAsNew("bad" as never).catch(codeOf);
        await tape.step(String(refused), () => 1);
        return tape.continueAsNew(n as never);
      },
      { input },
    );
    const p = s.process([loop]);
    const id = await p.start(loop, 10, { checked: true });
    expect((await p.over(id)).outcome).toBe(100);
    expect(
      (await s.records(id)).filter((r) => r.kind === "step.done").map((r) => (r.data as { name: string }).name),
    ).toEqual(["continueAsNew", "TAPE_BAD_INPUT"]);
  });

  it("counts its operations and signals the same live and on replay", async () => {
    const s = await stage();
    const counted: unknown[] = [];
    const loop = flow("loop", async (tape, n: number) => {
      await tape.step("a", () => 1);
      await tape.gate(go);
      counted.push({ ...tape.journal });
      await tape.gate(go);
      return n === 2 ? "over" : tape.continueAsNew(2 as never);
    });
    const p = s.process([loop]);
    const id = await p.start(loop, 1);
    for (let k = 0; k < 4; k++) {
      await waiting(s, p, id);
      await send(s, id, k);
    }
    expect((await p.over(id)).outcome).toBe("over");
    const figures = (notes: number) => ({ records: 2, notes, long: false });
    expect(new Set(counted.map((one) => JSON.stringify(one)))).toEqual(new Set([JSON.stringify(figures(1))]));
    expect(counted.length).toBeGreaterThanOrEqual(4);
  });

  it("retries a failed generation from its own start, with its own count", async () => {
    const s = await stage();
    const tries: number[] = [];
    const loop = flow(
      "loop",
      async (tape, n: number) => {
        await tape.step("flaky", () => {
          tries.push(n);
          if (tries.filter((one) => one === n).length < 2) throw new Error("once");
        });
        return n === 3 ? "over" : tape.continueAsNew((n + 1) as never);
      },
      { retry: { attempts: 2 } },
    );
    const p = s.process([loop]);
    const id = await p.start(loop, 1);
    expect((await p.over(id)).outcome).toBe("over");
    expect(tries).toEqual([1, 1, 2, 2, 3, 3]);
  });

  it("owes the compensations of all its generations, newest first", async () => {
    const s = await stage();
    const returned: number[] = [];
    const book = effect("book", (n: number) => n, { compensate: (n) => void returned.push(n) });
    const loop = flow("loop", async (tape, n: number) => {
      await tape.effect(book.with(n));
      if (n === 3) throw new Error("too much");
      return tape.continueAsNew((n + 1) as never);
    });
    const p = s.process(createRunner({ workflows: [loop], effects: [book] }));
    const id = await p.start(loop, 1);
    expect((await p.over(id)).status).toBe("COMPENSATED");
    expect(returned).toEqual([3, 2, 1]);
  });

  it("keeps its slot, so that no other run of its key runs in between", async () => {
    const s = await stage();
    const line = queue("line", { concurrency: 1 });
    await s.store.intake.putQueue(tenant, "line", line.spec);
    const order: string[] = [];
    const loop = flow("loop", async (tape, { name, n }: { name: string; n: number }) => {
      await tape.step("s", () => void order.push(`${name}${n}`));
      return n === 3 ? "over" : tape.continueAsNew({ name, n: n + 1 } as never);
    });
    const p = s.process(createRunner({ workflows: [loop], queues: [line] }));
    const spec = { queue: "line" };
    const ids = [];
    for (const name of ["a", "b"]) ids.push(await p.start(loop, { name, n: 1 }, spec));
    for (const id of ids) await p.over(id);
    expect(order.join(" ")).toBe("a1 a2 a3 b1 b2 b3");
  });

  it("answers a request that it leaves without a reply", async () => {
    const s = await stage();
    const add = gate<number, { total: number }>("add", { reply: true } as never);
    const loop = flow("loop", async (tape, n: number) => {
      if (n > 1) return "over";
      await tape.gate(add as never);
      return tape.continueAsNew(2 as never);
    });
    const p = s.process([loop]);
    const id = await p.start(loop, 1);
    await waiting(s, p, id);
    const talk = new Talk({ store: s.store, tenant, clock: s.clock, random: seededRandom("asker") });
    const response = talk.ask(id, add as never, 1 as never).catch(codeOf);
    await p.over(id);
    await s.clock.elapse(60_000);
    expect(await response).toBe("TAPE_ASK_REJECTED");
  });

  it("is not for the handlers of objects", async () => {
    const s = await stage();
    const counter = object("counter", {
      initial: () => 0,
      handlers: { add: async (tape, _self, by: number) => (tape as TapeContext<number>).continueAsNew(by) },
    });
    const p = s.process(createRunner({ workflows: [], objects: [counter] }));
    const of = counter.workflows.get("add")!;
    const id = await p.start(of as unknown as AnyWorkflow, { key: "k", input: 1 });
    const view = await p.over(id);
    expect([view.status, codeOf(view.outcome)]).toEqual(["FAILED", "TAPE_BAD_INPUT"]);
  });

  it("fails as a step does inside a body, and in a run that is cancelled", async () => {
    const s = await stage();
    const loop = flow("loop", async (tape) => {
      const nested = await tape.step("body", () => tape.continueAsNew(1 as never)).catch(codeOf);
      const cancelled = await tape.gate(go).catch(() => tape.continueAsNew(1 as never).catch(codeOf));
      return [nested, cancelled];
    });
    const p = s.process([loop]);
    const id = await p.start(loop, 0);
    await waiting(s, p, id);
    await s.store.intake.cancel(tenant, id, { reason: "enough" });
    expect((await p.over(id)).outcome).toEqual(["TAPE_NESTED", "TAPE_CANCELLED"]);
  });

  it("has a limit of records for each generation, not for all of them", async () => {
    const s = await stage({ limits: { journalRecords: 60, inboxNotes: 4 } });
    const loop = flow("loop", async (tape, n: number) => {
      for (let k = 0; k < 20; k++) await tape.step("s", () => k);
      await tape.gate(go);
      await tape.gate(go);
      return n === 6 ? "over" : tape.continueAsNew((n + 1) as never);
    });
    const p = s.process([loop]);
    const id = await p.start(loop, 1);
    for (let k = 0; k < 12; k++) {
      await waiting(s, p, id);
      await send(s, id, k);
    }
    expect((await p.over(id)).outcome).toBe("over");
    expect((await s.run(id)).lease.begins).toBeGreaterThan(100);
  });

  it("marks every patch as new, whatever earlier generations did without it", async () => {
    const s = await stage();
    let version = 1;
    const loop = flow("loop", async (tape, n: number) => {
      const patched = version === 1 ? "unpatched" : tape.patched("faster");
      await tape.step("s", () => n);
      await tape.gate(go);
      return n === 2 ? patched : tape.continueAsNew(2 as never);
    });
    const p = s.process([loop]);
    const id = await p.start(loop, 1);
    await waiting(s, p, id);
    version = 2;
    await send(s, id, "x");
    await waiting(s, p, id);
    await send(s, id, "y");
    expect((await p.over(id)).outcome).toBe(true);
  });

  it("closes the reservations that are open, and counts them as spent", async () => {
    const s = await stage();
    const loop = flow("loop", async (tape, n: number) => {
      if (n > 1) return "over";
      const spent = tape.budget.spend({ usd: 2 }, () => new Promise<never>(() => {}));
      await tape.race([spent, tape.sleep("1s")]);
      return tape.continueAsNew(2 as never);
    });
    const p = s.process([loop]);
    const id = await p.start(loop, 1, { budget: { usd: 5_000_000 } });
    expect((await p.over(id)).outcome).toBe("over");
    expect(await s.store.read.budgets(tenant, id)).toMatchObject([{ unit: "usd", reserved: 0, spent: 2_000_000 }]);
  });
});

describe("a fork of a run that has continued as new", () => {
  it("starts in the current generation, with its input, its results and its random values", async () => {
    const s = await stage();
    const drawn: string[] = [];
    let broken = true;
    const loop = flow("loop", async (tape, n: number) => {
      drawn.push(`${n} ${tape.uuid()}`);
      const side = await tape.lane("side", () => tape.step("aside", () => n));
      await tape.step("work", () => n * 10 + side);
      if (n < 3) return tape.continueAsNew((n + 1) as never);
      await tape.step("last", () => {
        if (broken) throw new Error("broken");
      });
      return n;
    });
    const p = s.process([loop]);
    const id = await p.start(loop, 1);
    expect((await p.over(id)).status).toBe("FAILED");
    broken = false;
    const deps = { store: s.store, keeper: p.keeper, tenant, clock: s.clock, random: seededRandom("fork") };
    const plan = await planFork(deps, id);
    expect([plan.at, plan.kept.map(({ name }) => name).sort()]).toEqual([2 * 2 * laneRoom + 1, ["aside", "work"]]);
    await expect(planFork(deps, id, 0)).rejects.toMatchObject({ code: "TAPE_BAD_FORK_POINT" });
    const copy = await fork(deps, id, { by: "ada", reason: "fixed", id: "copy" });
    expect((await p.over(copy)).outcome).toBe(3);
    expect(new Set(drawn).size).toBe(3);
    const names = (await s.records(copy)).flatMap((r) => (r.kind === "step.done" ? [r.data.name] : []));
    expect(names).toEqual(["last"]);
  });
});
