import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { humanLog, jsonLog, type Log } from "../../src/base/log.ts";
import { reasonOf } from "../../src/base/reason.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { TapeError } from "../../src/model/errors.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import type { Schema } from "../../src/sdk/schema.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";

interface Line {
  readonly level: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const lines: Line[] = [];
const log: Log = (level, event, fields = {}) => void lines.push({ level, event, fields });
const warned = (event: string): Line | undefined =>
  lines.find((line) => line.event === event && (line.level === "warn" || line.level === "error"));
const apps: Tape[] = [];
beforeEach(() => void lines.splice(0));
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

const amount: Schema<{ amount: number }> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => {
      const given = (value as { amount?: unknown } | null)?.amount;
      if (typeof given === "string" && /^\d+$/.test(given)) return { value: { amount: Number(given) } };
      return typeof given === "number"
        ? { value: { amount: given } }
        : { issues: [{ message: "is a number", path: ["amount"] }] };
    },
  },
};

async function opened(parts: Parameters<typeof createRunner>[0], store?: Awaited<ReturnType<typeof openStore>>) {
  const app = await Tape.open({ store: store ?? (await openStore("memory:")), runner: createRunner(parts), log });
  apps.push(app);
  return app;
}

describe("every failure is logged at warn, with its cause", () => {
  it("by default to stderr: JSON where stderr is no terminal", async () => {
    vi.stubEnv("TAPE_LOG_LEVEL", undefined);
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    try {
      const fails = workflow("fails", async (tape) =>
        tape.step("charge", () => Promise.reject(new Error("card expired"))),
      );
      await using app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [fails] }) });
      await (await app.start(fails, undefined, { id: "r" })).result().catch(() => {});
      const logged = write.mock.calls.map(([line]) => JSON.parse(String(line)) as Record<string, unknown>);
      expect(logged).toContainEqual(expect.objectContaining({ level: "warn", event: "step.failed", step: "charge" }));
      expect(logged).toContainEqual(
        expect.objectContaining({
          event: "run.failed",
          run: "r",
          code: "TAPE_RUN_FAILED",
          error: "Error: card expired",
          next: expect.stringContaining("inspect r"),
        }),
      );
      expect(logged.filter(({ level }) => level === "info")).toEqual([]);
    } finally {
      write.mockRestore();
      vi.unstubAllEnvs();
    }
  });

  it("a failed run: result gives the reason, including causes", async () => {
    const fails = workflow("fails", async () => {
      throw new Error("no invoice", { cause: new TypeError("x is undefined") });
    });
    const app = await opened({ workflows: [fails] });
    const ended = await (await app.start(fails, undefined, { id: "r" })).result().catch((error: Error) => error);
    expect(String(ended)).toContain("run r ended as FAILED: Error: no invoice; cause: TypeError: x is undefined");
    expect(warned("run.failed")?.fields.error).toBe("Error: no invoice; cause: TypeError: x is undefined");
  });

  it("a failed effect, an effect in doubt, and a run that is stuck on it", async () => {
    const wire = effect("wire", () => Promise.reject(new Error("connection reset")), { allowUnsafe: "a test" });
    const pays = workflow("pays", async () => wire(1));
    const app = await opened({ workflows: [pays], effects: [wire] });
    const stuck = await (await app.start(pays, undefined, { id: "r" })).result().catch((error: Error) => error);
    expect(stuck).toMatchObject({ code: "TAPE_RUN_STUCK" });
    expect(warned("effect.unknown")?.fields).toMatchObject({
      run: "r",
      effect: "wire",
      error: "Error: connection reset",
    });
    expect(warned("effect.stuck")?.fields).toMatchObject({
      code: "TAPE_RUN_STUCK",
      next: expect.stringContaining("durable-tape resolve effect r 0"),
    });
    expect(warned("run.stuck")?.fields).toMatchObject({ code: "TAPE_RUN_STUCK", next: expect.any(String) });
  });

  it("a run that is retried", async () => {
    const fails = workflow("fails", async () => Promise.reject(new Error("later")), {
      retry: { attempts: 2, base: 1 },
    });
    const app = await opened({ workflows: [fails] });
    await (await app.start(fails, undefined)).result().catch(() => {});
    expect(warned("run.retried")?.fields).toMatchObject({ attempt: 1, attempts: 2, error: "Error: later" });
  });

  it("a human-readable entry is one line, whatever the error contains, with code and next step", () => {
    const written: string[] = [];
    const log = humanLog((line) => void written.push(line));
    const error = new TapeError("TAPE_NO_WORKER", "none\n\u001b[2Jhas \u202eit", {}, new Error("down"));
    log("warn", "run.x", { run: "pay 7", ...{ error: reasonOf(error), code: error.code, next: error.next } });
    log("info", "run.y");
    expect(written).toEqual([
      'tape warn run.x run="pay 7": TAPE_NO_WORKER: none\\n\\e[2Jhas \\u202eit; cause: Error: down Next: Start a process whose runner has this workflow.\n',
    ]);
  });

  it("jsonLog needs no clock, and a field that cannot be serialised does not break the caller", () => {
    const written: string[] = [];
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    jsonLog((line) => void written.push(line))("info", "x", { circle, n: 1n });
    expect(JSON.parse(written[0]!)).toMatchObject({ event: "x", circle: "[object Object]" });
  });
});

describe("inputs and signals are checked against their schemas, wherever they come from", () => {
  const pay = workflow("pay", async (tape, input: { amount: number }) => tape.step("take", () => input.amount + 1), {
    input: amount,
  });

  it("an input that its starter could not check fails the run before any step", async () => {
    const app = await opened({ workflows: [pay] });
    await app.store.intake.createRuns("default", [{ id: "bad", workflow: "pay", input: { amount: "many" } }]);
    const ended = await (await app.run("bad")).result().catch((error: Error) => error);
    expect(String((ended as Error).cause)).toContain("TAPE_BAD_INPUT: input of pay: amount: is a number");
    const kinds = (await Array.fromAsync(app.journal("bad"))).map(({ kind }) => kind);
    expect(kinds).not.toContain("step.done");
  });

  it("an input that fits is transformed by its schema, once", async () => {
    const app = await opened({ workflows: [pay] });
    await app.store.intake.createRuns("default", [{ id: "raw", workflow: "pay", input: { amount: "41" } }]);
    expect(await (await app.run("raw")).result()).toBe(42);
    expect(await (await app.start(pay, { amount: "41" } as never)).result()).toBe(42);
  });

  it("the input of a child is checked, too", async () => {
    const parent = workflow("parent", async (tape) => {
      const child = await tape.spawn(pay, { amount: "many" } as never);
      return child.result();
    });
    const app = await opened({ workflows: [pay, parent] });
    const ended = await (await app.start(parent, undefined)).result().catch((error: Error) => error);
    expect(String((ended as Error).message)).toContain("amount: is a number");
  });

  it("a signal that does not fit is recorded as refused; the gate keeps waiting and takes the next signal", async () => {
    const cfo = gate<{ amount: number }>("cfo", { schema: amount });
    const asks = workflow("asks", async (tape) => tape.gate(cfo));
    const app = await opened({ workflows: [asks] });
    const run = await app.start(asks, undefined, { id: "r" });
    await vi.waitFor(async () => expect(await app.gates.list({ run: "r" })).toHaveLength(1));
    await app.store.intake.signal("default", "r", { name: "cfo", value: "yes" });
    await vi.waitFor(() => expect(warned("signal.refused")).toBeDefined());
    expect(warned("signal.refused")!.fields).toMatchObject({
      run: "r",
      gate: "cfo",
      code: "TAPE_BAD_GATE_VALUE",
      error: "amount: is a number",
    });
    expect(await app.gates.list({ run: "r" })).toHaveLength(1);
    await app.store.intake.signal("default", "r", { name: "cfo", value: { amount: "7" } });
    expect(await run.result()).toEqual({ status: "received", value: { amount: 7 } });
    const kinds = (await Array.fromAsync(app.journal("r"))).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "signal.refused")).toHaveLength(1);
  });

  it("a refused signal stays refused after a crash, and is logged once", async () => {
    const cfo = gate<{ amount: number }>("cfo", { schema: amount });
    const asks = workflow("asks", async (tape) => tape.gate(cfo));
    const store = await openStore("memory:");
    const first = await opened({ workflows: [asks] }, store);
    await first.start(asks, undefined, { id: "r" });
    await first.store.intake.signal("default", "r", { name: "cfo", value: "yes" });
    await vi.waitFor(() => expect(warned("signal.refused")).toBeDefined());
    await first.close();
    const second = await opened({ workflows: [asks] }, store);
    await second.signal("r", cfo, { amount: 7 });
    expect(await (await second.run("r")).result()).toEqual({ status: "received", value: { amount: 7 } });
    expect(lines.filter(({ event }) => event === "signal.refused")).toHaveLength(1);
    await second.close();
    apps.splice(0);
    await store.close();
  });
});

describe("a run of a workflow that no process has", () => {
  const treasury = workflow("treasury", async () => "paid");
  const treasry = workflow("treasry", async () => "paid");

  it("logs a warning at its start that suggests the probable name", async () => {
    const clock = new VirtualTime();
    const store = await clock.during(openStore("memory:", { clock }));
    const runner = createRunner({ workflows: [treasury] });
    const app = await clock.during(Tape.open({ store, runner, clock, log }));
    await clock.during(app.start(treasry, undefined, { id: "typo" }));
    await clock.during(clock.sleep(10));
    expect(warned("run.unserved")?.fields).toMatchObject({ run: "typo", workflow: "treasry", code: "TAPE_NO_WORKER" });
    expect(String(warned("run.unserved")?.fields.error)).toContain("did you mean treasury?");
    await clock.during(app.start(treasury, undefined)); // a process has it
    expect(lines.filter(({ event }) => event === "run.unserved")).toHaveLength(1);
    await clock.during(app.close());
    await clock.during(store.close());
  });

  it("logs no warning where another process has reported the workflow", async () => {
    const clock = new VirtualTime();
    const store = await clock.during(openStore("memory:", { clock }));
    const worker = await clock.during(
      Tape.open({ store, runner: createRunner({ workflows: [treasury] }), clock, log }),
    );
    await clock.during(clock.sleep(2_000)); // its first report
    const starter = await clock.during(
      Tape.open({ store, runner: createRunner({ workflows: [] }), clock, log, work: false }),
    );
    const run = await clock.during(starter.start(treasury, undefined));
    expect(await clock.during(run.result())).toBe("paid");
    expect(warned("run.unserved")).toBeUndefined();
    await clock.during(Promise.all([worker.close(), starter.close()]));
    await clock.during(store.close());
  });

  it("can be cancelled from any process: it ends at once, without a worker", async () => {
    const app = await opened({ workflows: [treasury] });
    const run = await app.start(treasry, undefined, { id: "typo" });
    await app.store.intake.signal("default", "typo", { name: "g", value: 1 });
    await app.cancel("typo", { reason: "a slip", by: "ada" });
    expect(await run.status()).toBe("CANCELLED");
    const ended = await run.result().catch((error: Error) => error);
    expect(String((ended as Error).cause)).toContain("TAPE_CANCELLED");
  });

  it("a started run is left to the process that drives it", async () => {
    const cfo = gate("cfo");
    const asks = workflow("asks", async (tape) => tape.gate(cfo));
    const store = await openStore("memory:");
    const first = await opened({ workflows: [asks] }, store);
    await first.start(asks, undefined, { id: "r" });
    await vi.waitFor(async () => expect(await first.gates.list()).toHaveLength(1));
    await first.close();
    const second = await opened({ workflows: [] }, store);
    await second.cancel("r", { reason: "no longer" });
    expect((await second.runs.get("r"))?.status).not.toBe("CANCELLED");
    await second.close();
    apps.splice(0);
    await store.close();
  });
});
