import { describe, expect, it } from "vitest";
import { type Effect, effect } from "../../src/sdk/effect.ts";
import { NotSent, outcome } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { stage, tenant, ttlMs } from "./stage.ts";

const runnerOf = (caller: AnyWorkflow, made: Effect<null, unknown>) =>
  createRunner({ workflows: [caller], effects: [made as never] });

describe.each(["inline", "outbox"] as const)("an %s attempt", (dispatch) => {
  const runOf = async (made: Effect<null, unknown>) => {
    const s = await stage({ limits: { payloadBytes: 64 * 1024 } });
    const caller = workflow("caller", (tape) => tape.attempt(made.with(null))) as unknown as AnyWorkflow;
    const p = s.process(runnerOf(caller, made));
    const id = await p.start(caller);
    const { outcome: result } = await p.over(id);
    const [row] = await s.store.read.effects(tenant, { run: id, role: "effect" });
    const lost = s.logged.some(({ event }) => event === "run.drive_lost");
    return { result, row: row!, lost };
  };

  it("that was not sent is sent again, even if isDefinite accepts every error", async () => {
    let sent = 0;
    const made = effect("send", (_: null, fx) => (sent++ === 0 ? Promise.reject(new NotSent()) : fx.attempt), {
      dispatch,
      isDefinite: () => true,
      compensate: () => {},
    });
    const { result, row } = await runOf(made);
    expect([result, row.status, sent]).toEqual([{ status: "confirmed", value: 2 }, "CONFIRMED", 2]);
  });

  it("that fails with an error too long for a record is UNKNOWN like any other", async () => {
    const made = effect("send", (_: null) => Promise.reject(new Error("x".repeat(100_000))), {
      dispatch,
      businessKey: () => "k",
      observe: () => outcome.confirmed("found"),
    });
    const { result, row, lost } = await runOf(made);
    expect([result, row.status, row.reason]).toEqual([
      { status: "confirmed", value: "found" },
      "CONFIRMED",
      "observed",
    ]);
    expect(lost).toBe(false);
  });

  it("that throws an unreadable error is UNKNOWN like any other", async () => {
    const hostile = (): never => {
      throw new Error("unreadable");
    };
    const thrown = new Proxy(new Error("x"), { get: hostile, getPrototypeOf: hostile });
    const made = effect(
      "send",
      (_: null): string => {
        throw thrown;
      },
      { dispatch, businessKey: () => "k", observe: () => outcome.confirmed("found") },
    );
    const { result, row, lost } = await runOf(made);
    expect([result, row.status, row.reason]).toEqual([
      { status: "confirmed", value: "found" },
      "CONFIRMED",
      "observed",
    ]);
    expect(lost).toBe(false);
  });
});

it("in an ending run an attempt that was not sent does not settle an earlier one in doubt", async () => {
  const s = await stage({ limits: { journalRecords: 400 } });
  const compensated: unknown[] = [];
  let sent = 0;
  const made = effect(
    "put",
    async (_: null) => {
      if (++sent === 1) throw new Error("the connection broke");
      s.clock.stall(ttlMs + 1); // its lease has expired by then, so the result becomes evidence
      throw new NotSent();
    },
    {
      semantics: "idempotent",
      retry: { attempts: 3, base: "1s" },
      observe: () => outcome.confirmed("stored"),
      compensate: (_args, result) => void compensated.push(result),
    },
  );
  const long = workflow("caller", async (tape) => {
    for (let k = 0; k < 376; k++) await tape.step(`step ${k}`, () => k);
    return made(null);
  });
  const runner = runnerOf(long as unknown as AnyWorkflow, made);
  const one = s.process(runner);
  const id = await one.start(long as unknown as AnyWorkflow);
  while (sent < 2) {
    await s.clock.elapse(500);
    await settled(10);
  }
  await settled(20);
  expect((await s.notes(id)).map(({ kind, data }) => [kind, (data as { happened: boolean }).happened])).toEqual([
    ["effect.evidence", false],
  ]);
  one.crash();
  // The successor finds the journal full: the run fails before it requests anything.
  const view = await s.process(runner).over(id);
  expect([view.status, sent, compensated]).toEqual(["COMPENSATED", 2, ["stored"]]);
});
