import { describe, expect, it } from "vitest";
import { type Effect, effect } from "../../src/sdk/effect.ts";
import { NotSent, outcome } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { stage, tenant, ttlMs } from "./stage.ts";

const runnerOf = (act: AnyWorkflow, made: Effect<null, unknown>) =>
  createRunner({ workflows: [act], effects: [made as never] });

describe.each(["inline", "outbox"] as const)("an attempt is judged by the one rule: %s", (dispatch) => {
  const runOf = async (made: Effect<null, unknown>) => {
    const s = await stage({ limits: { payloadBytes: 64 * 1024 } });
    const act = workflow("act", (tape) => tape.attempt(made.with(null))) as unknown as AnyWorkflow;
    const p = s.process(runnerOf(act, made));
    const id = await p.start(act);
    const { outcome: came } = await p.over(id);
    const [row] = await s.store.read.effects(tenant, { run: id, role: "effect" });
    const lost = s.logged.some(({ event }) => event === "run.drive_lost");
    return { came, row: row!, lost };
  };

  it("what was not sent is sent again, also where the author takes every error for a refusal", async () => {
    let sent = 0;
    const made = effect("send", (_: null, fx) => (sent++ === 0 ? Promise.reject(new NotSent()) : fx.attempt), {
      dispatch,
      isDefinite: () => true,
      compensate: () => {},
    });
    const { came, row } = await runOf(made);
    expect([came, row.status, sent]).toEqual([{ status: "confirmed", value: 2 }, "CONFIRMED", 2]);
  });

  it("an error that is too long for a record leaves the doubt that any error does", async () => {
    const made = effect("send", (_: null) => Promise.reject(new Error("x".repeat(100_000))), {
      dispatch,
      businessKey: () => "k",
      observe: () => outcome.confirmed("found"),
    });
    const { came, row, lost } = await runOf(made);
    expect([came, row.status, row.reason]).toEqual([{ status: "confirmed", value: "found" }, "CONFIRMED", "observed"]);
    expect(lost).toBe(false);
  });

  it("so does one that cannot be looked at, thrown at once", async () => {
    const hostile = (): never => {
      throw new Error("do not look at me");
    };
    const thrown = new Proxy(new Error("x"), { get: hostile, getPrototypeOf: hostile });
    const made = effect(
      "send",
      (_: null): string => {
        throw thrown;
      },
      { dispatch, businessKey: () => "k", observe: () => outcome.confirmed("found") },
    );
    const { came, row, lost } = await runOf(made);
    expect([came, row.status, row.reason]).toEqual([{ status: "confirmed", value: "found" }, "CONFIRMED", "observed"]);
    expect(lost).toBe(false);
  });
});

it("in a run that is ending, an attempt that was not sent says nothing about an earlier one in doubt", async () => {
  const s = await stage({ limits: { journalRecords: 400 } });
  const undone: unknown[] = [];
  let sent = 0;
  const made = effect(
    "put",
    async (_: null) => {
      if (++sent === 1) throw new Error("the connection broke");
      s.clock.stall(ttlMs + 1); // its lease is over when it says so: that becomes evidence
      throw new NotSent();
    },
    {
      semantics: "idempotent",
      retry: { attempts: 3, base: "1s" },
      observe: () => outcome.confirmed("stored"),
      compensate: (_args, result) => void undone.push(result),
    },
  );
  const long = workflow("act", async (tape) => {
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
  // Its successor finds the journal full: the run fails before it asks for anything.
  const view = await s.process(runner).over(id);
  expect([view.status, sent, undone]).toEqual(["COMPENSATED", 2, ["stored"]]);
});
