import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { NotSent, outcome } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { stage, tenant } from "./stage.ts";

const never = gate<string>("never");
const go = gate<string>("go");
const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code ?? String(error);
const detailsOf = (error: unknown) => (error as { details: Record<string, unknown> }).details;

/** Runs the workflow to its end; a second process takes over at a gate `pause`, if there is one. */
async function ran(run: (tape: TapeContext, input: never) => unknown, effects: readonly unknown[] = []) {
  const s = await stage();
  const flow = workflow("flow", run as never) as unknown as AnyWorkflow;
  const runner = createRunner({ workflows: [flow, child] as never, effects: effects as never });
  const p = s.process(runner);
  const id = await p.start(flow);
  return { s, p, id, runner };
}

const child = workflow("child", async (tape, input: string) => {
  await tape.gate(never);
  return input;
});

describe("a scope", () => {
  it("returns the result of its function, with two records", async () => {
    const { s, p, id } = await ran(async (tape) => {
      const inner = await tape.scope(async () => tape.step("a", () => 1));
      return inner + (await tape.step("b", () => 2));
    });
    expect((await p.over(id)).outcome).toBe(3);
    const kinds = (await s.kinds(id)).filter((kind) => !kind.startsWith("run.") && !kind.startsWith("term."));
    expect(kinds).toEqual(["scope.opened", "step.done", "scope.closed", "step.done"]);
  });

  it("refuses what is pending when its handle is cancelled, withdraws gates and timers, and asks children", async () => {
    const { s, p, id } = await ran(async (tape) => {
      const errors: unknown[] = [];
      await tape.scope(async (scope) => {
        const pending = [
          tape.gate(never, { timeout: "1h" }),
          tape.sleep("1h"),
          tape.call(child, "x"),
          tape.callback("called").then((callback) => callback.result()),
        ];
        await tape.step("first", () => 1);
        await tape.gate(go, { timeout: "1s" });
        scope.cancel("enough");
        for (const one of await Promise.allSettled(pending)) errors.push(codeOf((one as { reason: unknown }).reason));
        errors.push(await tape.step("late", () => 1).catch(codeOf));
      });
      await tape.gate(gate("hold"), { timeout: "5s" }); // what follows is a replay
      return errors;
    });
    const { outcome, status } = await p.over(id);
    expect([status, outcome]).toEqual(["COMPLETED", Array(5).fill("TAPE_CANCELLED")]);
    const gates = await s.store.read.gates(tenant, { run: id });
    expect(gates.filter(({ name }) => name !== "go" && name !== "hold").map((one) => one.status)).toEqual([
      "WITHDRAWN",
      "WITHDRAWN",
    ]);
    expect((await s.run(`${id}.3`)).status).toBe("CANCELLED");
    expect((await s.store.read.timers(tenant, { run: id })).filter((one) => one.status === "SET")).toEqual([]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("whose time is over refuses with TAPE_TIMEOUT, also on replay", async () => {
    const { s, p, id } = await ran(async (tape) => {
      const first = await tape.timeout("10s", () => tape.gate(never)).catch(codeOf);
      await tape.gate(gate("hold"), { timeout: "5s" });
      const second = await tape.timeout("1h", () => tape.step("quick", () => "quick"));
      return [first, second];
    });
    expect((await p.over(id)).outcome).toEqual(["TAPE_TIMEOUT", "quick"]);
    const closed = (await s.records(id)).flatMap(({ kind, data }) => (kind === "scope.closed" ? [data] : []));
    expect(closed).toMatchObject([
      { reason: "timeout", of: 0, gates: [1] },
      { reason: "done", timers: [{ purpose: "scope" }] },
    ]);
    expect((await s.store.read.timers(tenant, { run: id })).filter((one) => one.status === "SET")).toEqual([]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("that fails ends its other branches; what is outside continues", async () => {
    const { p, id } = await ran(async (tape) => {
      const outside = tape.gate(go, { timeout: "20s" }).then(({ status }) => status);
      const inside: unknown[] = [];
      const failed = await tape
        .scope(() =>
          Promise.all([
            tape.gate(never).catch((error: unknown) => inside.push(codeOf(error))),
            tape.step("fails", () => Promise.reject(new Error("no"))),
          ]),
        )
        .catch((error: Error) => error.message);
      return [failed, inside, await outside];
    });
    expect((await p.over(id)).outcome).toEqual(["no", ["TAPE_CANCELLED"], "timeout"]);
  });

  it("inside another one ends with it, and the inner time-out leaves the outer one alone", async () => {
    const { s, p, id } = await ran(async (tape) => {
      const seen: unknown[] = [];
      const outer = await tape
        .timeout("60s", async () => {
          seen.push(await tape.timeout("10s", () => tape.gate(never)).catch(codeOf));
          seen.push(await tape.scope(() => tape.timeout("1h", () => tape.gate(never))).catch(codeOf));
          return "returned";
        })
        .catch(codeOf);
      return [...seen, outer];
    });
    expect((await p.over(id)).outcome).toEqual(["TAPE_TIMEOUT", "TAPE_TIMEOUT", "returned"]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("shows its signal to running bodies", async () => {
    let aborted = false;
    const { p, id } = await ran(async (tape) => {
      await tape
        .timeout("10s", () =>
          tape.step("long", ({ abortSignal }) => {
            const { promise, resolve } = Promise.withResolvers<string>();
            abortSignal.addEventListener("abort", () => {
              aborted = true;
              resolve("stopped");
            });
            return promise;
          }),
        )
        .catch(codeOf);
      await tape.sleep("1s");
      return tape.sample("aborted", () => aborted);
    });
    expect((await p.over(id)).outcome).toBe(true);
  });

  it("has bounds for its depth and its options", async () => {
    const { p, id } = await ran(async (tape) => {
      const deep = (level: number): Promise<unknown> => tape.scope(() => deep(level + 1));
      return [
        await deep(0).catch(codeOf),
        await Promise.resolve()
          .then(() => tape.scope(() => 1, { shield: true } as never))
          .catch(codeOf),
        await Promise.resolve()
          .then(() => tape.timeout("soon" as never, () => 1))
          .catch(codeOf),
      ];
    });
    expect((await p.over(id)).outcome).toEqual(["TAPE_TOO_LARGE", "TAPE_BAD_INPUT", "TAPE_BAD_INPUT"]);
  });
});

describe("an effect in a scope that ends", () => {
  it("that was sent stays sent: it is confirmed and owed", async () => {
    let respond = (): void => {};
    const book = effect("book", () => new Promise<string>((resolve) => (respond = () => resolve("booked"))), {
      timeout: "5m",
      compensate: () => {},
    });
    const { s, p, id } = await ran(
      async (tape) => {
        const error = await tape
          .timeout("10s", () => tape.effect(book.with(undefined as never)))
          .catch((thrown: unknown) => thrown);
        await tape.gate(go);
        return [codeOf(error), detailsOf(error).sent];
      },
      [book],
    );
    await p.until(async () => (await s.kinds(id)).includes("scope.closed"));
    respond();
    await p.until(async () => (await s.kinds(id)).includes("obligation.armed"));
    await s.store.intake.signal(tenant, id, { name: "go", value: "x" });
    expect((await p.over(id)).outcome).toEqual(["TAPE_TIMEOUT", true]);
    expect((await s.store.read.effects(tenant, { run: id })).map(({ status }) => status)).toEqual([
      "CONFIRMED",
      "DISCHARGED",
    ]);
  });

  it("that is between two attempts and was not sent is withdrawn, and its error says so", async () => {
    const wire = effect("wire", () => Promise.reject(new NotSent("offline")), {
      semantics: "idempotent",
      retry: { attempts: 50, base: "60s", cap: "60s" },
    });
    const { s, p, id } = await ran(
      async (tape) => {
        const error = await tape
          .timeout("10s", () => tape.effect(wire.with(undefined as never)))
          .catch((thrown: unknown) => thrown);
        await tape.gate(gate("hold"), { timeout: "5s" });
        return [codeOf(error), detailsOf(error).sent];
      },
      [wire],
    );
    expect((await p.over(id)).outcome).toEqual(["TAPE_TIMEOUT", false]);
    expect((await s.store.read.effects(tenant, { run: id })).map(({ status }) => status)).toEqual(["WITHDRAWN"]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("that a crash interrupted is observed, not sent again", async () => {
    const calls: string[] = [];
    const pay = effect(
      "pay",
      () => {
        calls.push("call");
        return new Promise<string>(() => {});
      },
      { semantics: "idempotent", timeout: "5m", observe: () => outcome.confirmed("found") } as never,
    );
    const { s, p, id, runner } = await ran(
      async (tape) => {
        const error = await tape
          .timeout("10s", () => tape.effect(pay.with(undefined as never)))
          .catch((thrown: unknown) => thrown);
        await tape.gate(go);
        return codeOf(error);
      },
      [pay],
    );
    await p.until(async () => (await s.kinds(id)).includes("scope.closed"));
    p.crash();
    await s.clock.elapse(60_000);
    const q = s.process(runner);
    await s.store.intake.signal(tenant, id, { name: "go", value: "x" });
    expect((await q.over(id)).outcome).toBe("TAPE_TIMEOUT");
    expect(calls).toEqual(["call"]);
    const [row] = await s.store.read.effects(tenant, { run: id });
    expect(row?.status).toBe("CONFIRMED");
  });
});

describe("a shielded scope", () => {
  it("runs steps and waits after the cancellation of the run, across a park", async () => {
    const { s, p, id } = await ran(async (tape) => {
      const log: unknown[] = [];
      try {
        await tape.gate(never);
      } finally {
        log.push(await tape.step("refused", () => 1).catch(codeOf));
        await tape.scope(
          async () => {
            await tape.sleep("5s");
            log.push(await tape.step("clean", ({ abortSignal }) => abortSignal.aborted));
          },
          { shielded: true },
        );
        await tape.scope(() => tape.step("note", () => log.join(" ")), { shielded: true });
      }
    });
    await p.until(async () => (await s.store.read.gates(tenant, { run: id, open: true })).length > 0);
    await s.store.intake.cancel(tenant, id, { reason: "enough" });
    expect((await p.over(id)).status).toBe("CANCELLED");
    const steps = (await s.records(id)).flatMap(({ kind, data }) => (kind === "step.done" ? [data] : []));
    expect(steps).toMatchObject([
      { name: "clean", value: false },
      { name: "note", value: "TAPE_CANCELLED false" },
    ]);
  });

  it("inside a scope that has ended still runs, and its own time is bounded", async () => {
    const { p, id } = await ran(async (tape) => {
      const log: unknown[] = [];
      await tape
        .timeout("10s", async () => {
          try {
            await tape.gate(never);
          } finally {
            log.push(await tape.scope(() => tape.step("clean", () => "cleaned"), { shielded: true }));
            log.push(await tape.scope(() => tape.gate(never), { shielded: true }).catch(codeOf));
          }
        })
        .catch((error: unknown) => log.push(codeOf(error)));
      return log;
    });
    expect((await p.over(id)).outcome).toEqual(["cleaned", "TAPE_TIMEOUT", "TAPE_TIMEOUT"]);
  });
});

describe("a retried run", () => {
  it("retries the failure inside a scope, whose time starts again", async () => {
    const s = await stage();
    let calls = 0;
    const flow = workflow(
      "flow",
      (tape) =>
        tape.timeout("30s", async () => {
          await tape.step("flaky", () => {
            if (++calls === 1) throw new Error("once");
          });
          return tape.gate(never);
        }),
      { retry: { attempts: 2, base: "1s" } },
    ) as unknown as AnyWorkflow;
    const p = s.process([flow]);
    const id = await p.start(flow);
    const { outcome } = await p.over(id);
    expect(codeOf(outcome)).toBe("TAPE_TIMEOUT");
    expect(calls).toBe(2);
    expect((await s.records(id)).filter(({ kind }) => kind === "scope.opened").map(({ data }) => data)).toMatchObject([
      { timeoutMs: 30_000 },
      { timeoutMs: 30_000, again: 1 },
    ]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });
});
