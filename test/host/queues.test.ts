import { describe, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { queue } from "../../src/sdk/queue.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { onBothStores } from "../kit/both-stores.ts";

const both = onBothStores();
const audit = { by: "ada", reason: "drill" };

/** Counts how many bodies run at once, in all and per key. */
class Gauge {
  readonly #inside = new Map<string, number>();
  readonly order: string[] = [];
  max = 0;
  maxOfKey = 0;

  async enter(key: string, work: () => Promise<unknown>): Promise<void> {
    this.order.push(key);
    const own = (this.#inside.get(key) ?? 0) + 1;
    this.#inside.set(key, own);
    this.maxOfKey = Math.max(this.maxOfKey, own);
    this.max = Math.max(
      this.max,
      [...this.#inside.values()].reduce((sum, n) => sum + n, 0),
    );
    await work();
    this.#inside.set(key, this.#inside.get(key)! - 1);
  }
}

describe("runs of a queue", () => {
  both("run at most as many at once as queue, key and process allow, and all of them end", async (open) => {
    const gauge = new Gauge();
    const models = queue("models", { concurrency: 3, perKey: { concurrency: 2 } });
    const call = workflow(
      "call",
      async (tape, { customer, n }: { customer: string; n: number }) => {
        await tape.step("inside", () => gauge.enter(customer, () => Promise.resolve()));
        return n;
      },
      { queue: models, key: ({ customer }) => customer },
    );
    const t = await open(createRunner({ workflows: [call] }));
    const items = Array.from({ length: 24 }, (_, n) => ({ input: { customer: `c${n % 3}`, n } }));
    const started = await t.time.during(t.tape.startAll(call, items));
    const results = await t.time.during(
      Promise.all(started.map((one) => (one.ok ? one.run.result() : Promise.reject(one.error)))),
    );
    expect(results).toEqual(items.map(({ input }) => input.n));
    expect(gauge.max).toBeLessThanOrEqual(3);
    expect(gauge.maxOfKey).toBeLessThanOrEqual(2);
    const [view] = await t.time.during(t.tape.queues.list());
    expect(view).toMatchObject({ name: "models", running: 0, waiting: 0, started: 24 });
  });

  both("give up their slot while they wait, and continue before others start", async (open) => {
    const order: string[] = [];
    const ok = gate<string>("ok");
    const line = queue("line", { concurrency: 1 });
    const job = workflow(
      "job",
      async (tape, name: string) => {
        await tape.step("first", () => void order.push(`${name} starts`));
        if (name !== "waits") return;
        await tape.gate(ok);
        await tape.step("second", () => void order.push(`${name} continues`));
      },
      { queue: line },
    );
    const t = await open(createRunner({ workflows: [job] }));
    const waits = await t.time.during(t.tape.start(job, "waits"));
    await t.elapse(50);
    expect(await t.time.during(waits.status())).toBe("WAITING");
    await t.time.during(t.tape.queues.pause("line", audit));
    const others = await t.time.during(t.tape.startAll(job, [{ input: "a" }, { input: "b" }]));
    await t.time.during(t.tape.signal(waits.id, ok, "go"));
    await t.elapse(50);
    expect(await t.time.during(waits.status())).toBe("QUEUED");
    const why = await t.time.during(t.tape.queues.explain(waits.id));
    expect(why?.reasons).toEqual([{ why: "paused", by: "ada", reason: "drill" }]);
    await t.time.during(t.tape.queues.resume("line", audit));
    for (const one of others) if (one.ok) await t.time.during(one.run.result());
    expect(order).toEqual(["waits starts", "waits continues", "a starts", "b starts"]);
  });

  both("are cancelled in the queue, or expire there, without their code being called", async (open) => {
    const called: string[] = [];
    const line = queue("line", { concurrency: 1 });
    const job = workflow("job", async (tape, name: string) => tape.step("s", () => void called.push(name)), {
      queue: line,
    });
    const t = await open(createRunner({ workflows: [job] }));
    await t.time.during(t.tape.queues.pause("line", audit));
    const first = await t.time.during(t.tape.start(job, "cancelled"));
    const second = await t.time.during(t.tape.start(job, "expired", { expires: "1s" }));
    const third = await t.time.during(t.tape.start(job, "delayed", { delay: "1h" }));
    await t.time.during(t.tape.cancel(first.id, { reason: "no need" }));
    await t.time.during(t.tape.cancel(third.id, { reason: "no need" }));
    await expect(t.time.during(first.result())).rejects.toMatchObject({ code: "TAPE_RUN_FAILED" });
    await expect(t.time.during(third.result())).rejects.toMatchObject({ code: "TAPE_RUN_FAILED" });
    await expect(t.time.during(second.result())).rejects.toMatchObject({
      message: expect.stringContaining("has waited in queue line"),
    });
    expect(called).toEqual([]);
    expect(await t.time.during(second.status())).toBe("CANCELLED");
  });

  both("start later, at a time, or once with the last input", async (open) => {
    const inputs: unknown[] = [];
    const line = queue("line");
    const job = workflow("job", async (tape, input: number) => tape.step("s", () => void inputs.push(input)));
    const t = await open(createRunner({ workflows: [job], queues: [line] }));
    const now = await t.time.during(t.store.read.now());
    const delayed = await t.time.during(t.tape.start(job, 1, { queue: line, delay: 300 }));
    const timed = await t.time.during(t.tape.start(job, 2, { startAt: new Date(now + 400) }));
    const runs = [];
    for (const input of [3, 4, 5]) {
      runs.push(await t.time.during(t.tape.start(job, input, { debounce: { key: "k", wait: 500 } })));
    }
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
    expect(inputs).toEqual([]);
    for (const run of [delayed, timed, runs[0]!]) await t.time.during(run.result());
    expect(inputs).toEqual([1, 2, 5]);
  });

  both("with a unique key are one, joined or refused", async (open) => {
    const ok = gate("ok");
    const sync = workflow("sync", async (tape) => tape.gate(ok));
    const t = await open(createRunner({ workflows: [sync] }));
    const join = { unique: { key: "acme", onConflict: "join" } } as const;
    const first = await t.time.during(t.tape.start(sync, undefined, join));
    expect((await t.time.during(t.tape.start(sync, undefined, join))).id).toBe(first.id);
    const reject = { unique: { key: "acme", onConflict: "reject" } } as const;
    await expect(t.time.during(t.tape.start(sync, undefined, reject))).rejects.toMatchObject({
      code: "TAPE_RUN_LIVE",
      details: { run: first.id },
    });
    await t.time.during(t.tape.signal(first.id, ok, 1));
    await t.time.during(first.result());
    expect((await t.time.during(t.tape.start(sync, undefined, join))).id).not.toBe(first.id);
  });

  both("are started by a parent, and a nested start is refused to its code", async (open) => {
    const models = queue("models", { concurrency: 1 });
    const tight = queue("tight", { concurrency: 1, counts: "started" });
    const call = workflow("call", async (tape, n: number) => tape.step("s", () => n * 2));
    const parent = workflow(
      "parent",
      async (tape) => {
        const nested = await tape.spawn(call, 1, { queue: tight }).catch((error: unknown) => error);
        const children = await Promise.all(
          [1, 2, 3].map((n) => tape.spawn(call, n, { queue: models, key: `k${n}`, priority: 2 })),
        );
        const results = await Promise.all(children.map((child) => child.result()));
        return { code: (nested as { code?: string }).code, results };
      },
      { queue: tight },
    );
    const t = await open(createRunner({ workflows: [parent, call], queues: [models] }));
    const run = await t.time.during(t.tape.start(parent, undefined));
    expect(await t.time.during(run.result())).toEqual({ code: "TAPE_QUEUE_NESTED", results: [2, 4, 6] });
  });

  both("that keep each other's slots name the cycle, until one is cancelled", async (open) => {
    const [docks, cranes] = ["docks", "cranes"].map((name) => queue(name, { concurrency: 1, counts: "started" }));
    const load = workflow("load", async (tape) => tape.step("s", () => "loaded"));
    const ship = workflow("ship", async (tape, other: "docks" | "cranes") => {
      await tape.sleep(50); // both hold their slot by then
      return tape.call(load, undefined, { queue: other === "docks" ? docks! : cranes! });
    });
    const t = await open(createRunner({ workflows: [ship, load], queues: [docks!, cranes!] }));
    const a = await t.time.during(t.tape.start(ship, "cranes", { id: "a", queue: docks! }));
    const b = await t.time.during(t.tape.start(ship, "docks", { id: "b", queue: cranes! }));
    await t.elapse(1_000);
    const reasons = async (id: string) => (await t.time.during(t.tape.queues.explain(id)))?.reasons[0];
    for (const id of ["a", "b", "a.1", "b.1"]) {
      expect(await reasons(id)).toMatchObject({
        why: "cycle",
        steps: expect.arrayContaining([
          { run: "a.1", queue: "cranes", key: "", holder: "b" },
          { run: "b.1", queue: "docks", key: "", holder: "a" },
        ]),
      });
    }
    await t.time.during(t.tape.cancel("b.1", audit));
    await expect(t.time.during(b.result())).rejects.toMatchObject({ code: "TAPE_RUN_FAILED" });
    expect(await t.time.during(a.result())).toBe("loaded");
  });

  both("are started by a schedule, with its queue, key and priority", async (open) => {
    const line = queue("line", { concurrency: 1 });
    const job = workflow("job", async (tape) => tape.step("s", () => 1));
    const t = await open(createRunner({ workflows: [job], queues: [line] }));
    const options = { cron: "*/2 * * * * *", queue: line, key: "k", priority: 3 } as const;
    await t.time.during(t.tape.schedules.create("often", job, undefined, options));
    await t.elapse(2_500);
    const [run] = await t.time.during(t.tape.runs.list());
    const [created, started] = await t.time.during(Array.fromAsync(t.tape.journal(run!.id)));
    expect(created?.data).toMatchObject({ queue: { name: "line", key: "k", priority: 3 } });
    expect(started?.data).toMatchObject({ admitted: { queue: "line", key: "k" } });
    await t.time.during(t.tape.schedules.delete("often"));
  });
});

describe("a worker", () => {
  it("drives no more runs of a queue than perWorker allows", async () => {
    const gauge = new Gauge();
    const line = queue("line", { concurrency: 50, perWorker: 2 });
    const job = workflow("job", async (tape) => tape.step("s", () => gauge.enter("", () => Promise.resolve())), {
      queue: line,
    });
    const t = await VirtualTape.open({ runner: createRunner({ workflows: [job] }) });
    const started = await t.time.during(
      t.tape.startAll(
        job,
        Array.from({ length: 10 }, () => ({ input: undefined })),
      ),
    );
    for (const one of started) if (one.ok) await t.time.during(one.run.result());
    expect(gauge.max).toBeLessThanOrEqual(2);
    expect(gauge.order).toHaveLength(10);
    await t.close();
  });

  it("defines the queues of its runner, and a changed one is logged", async () => {
    const store = await openStore("memory:");
    const lines: string[] = [];
    const log = (_level: string, event: string): void => void lines.push(event);
    const open = (concurrency: number, counts: "running" | "started" = "running") => {
      const job = workflow("job", async () => 1, { queue: queue("line", { concurrency, counts }) });
      return Tape.open({ store, runner: createRunner({ workflows: [job] }), log, work: false });
    };
    const first = await open(1);
    expect((await first.queues.list()).map(({ name, limits }) => [name, limits])).toEqual([
      ["line", { concurrency: 1 }],
    ]);
    await open(1);
    expect(lines).toEqual([]);
    await open(2);
    expect(lines).toEqual(["queue.changed"]);
    await store.intake.createRuns("default", [{ id: "r", workflow: "job", input: 1, queue: "line" }]);
    await expect(open(2, "started")).rejects.toMatchObject({ code: "TAPE_QUEUE_CHANGED" });
    await store.close();
  });

  it("keeps an operator's limits", async () => {
    const line = queue("line", { concurrency: 5, perKey: { rate: { limit: 10, per: "1m" } } });
    const job = workflow("job", async () => 1, { queue: line });
    const t = await VirtualTape.open({ runner: createRunner({ workflows: [job] }) });
    const { queues } = t.tape;
    const set = await t.time.during(queues.set("line", { concurrency: 1, perKey: { rate: null } }, audit));
    expect(set.limits).toEqual({ concurrency: 1 });
    expect((await t.time.during(queues.reset("line", audit))).limits.concurrency).toBe(5);
    await expect(async () => queues.set("line", {}, audit)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    await expect(async () => queues.set("line", { counts: "started" } as never, audit)).rejects.toMatchObject({
      message: expect.stringContaining("part of its definition"),
    });
    await t.close();
  });
});

describe("mistakes", () => {
  const line = queue("line");
  const job = workflow("job", async () => 1);
  const bad: [string, () => unknown][] = [
    ["a concurrency of 0", () => queue("q", { concurrency: 0 })],
    ["a negative rate", () => queue("q", { rate: { limit: -5, per: "1m" } })],
    ["a rate without a limit", () => queue("q", { rate: { per: "1m" } as never })],
    ["an unknown option", () => queue("q", { limit: 5 } as never)],
    ["an unknown count", () => queue("q", { counts: "often" as never })],
    ["a key without a queue", () => workflow("w", async () => 1, { key: () => "k" })],
    ["a queue that is a name", () => workflow("w", async () => 1, { queue: "line" as never })],
  ];
  it.each(bad)("%s is refused at the definition", (_what, define) => {
    expect(define).toThrow(expect.objectContaining({ code: "TAPE_BAD_INPUT" }));
  });

  it("in a start are refused before anything is written", async () => {
    const app = await Tape.open({
      store: await openStore("memory:"),
      runner: createRunner({ workflows: [job], queues: [line] }),
    });
    const starts = [
      { queue: line, priority: 0 },
      { queue: line, key: 5 as never },
      { priority: 2 },
      { delay: "soon" as never },
      { startAt: "tomorrow" as never },
      { expires: "1h" as const },
      { unique: { key: "k", onConflict: "wait" as never } },
      { debounce: { key: "", wait: "1s" as const } },
      { queue: "line" as never },
    ];
    for (const options of starts) {
      await expect(app.start(job, undefined, options)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    }
    await expect(app.start(job, undefined, { queue: queue("other") })).rejects.toMatchObject({
      code: "TAPE_QUEUE_UNKNOWN",
    });
    const key = "k".repeat(10_000);
    await expect(app.start(job, undefined, { queue: line, key })).rejects.toMatchObject({ code: "TAPE_TOO_LARGE" });
    expect(await app.runs.list()).toEqual([]);
    await app.close();
    await app.store.close();
  });
});
