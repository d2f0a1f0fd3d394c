import type { DatabaseSync } from "node:sqlite";
import type pg from "pg";
import { z } from "zod";
import {
  type Child,
  createRunner,
  type EffectCall,
  type EffectResult,
  effect,
  type Fence,
  type GateAnswer,
  gate,
  outcome,
  Tape,
  workflow,
} from "../../src/exports/index.ts";
import { inferred } from "./same.ts";

/** The types that authors see. Only compiled, never executed: tsc is part of the test command. */

const mail = effect("mail", async (a: { to: string }) => ({ id: a.to.length }), { semantics: "idempotent" });
const yes = gate<{ ok: boolean }>("yes");
const child = workflow("child", async (_tape, n: number) => `${n}`);

declare const pool: pg.Pool;
declare const database: DatabaseSync;

export const transactions = workflow("transactions", async (tape) => {
  const booked = await tape.transaction("book", pool, async (client, { abortSignal }) => {
    inferred(client)<pg.PoolClient>();
    inferred(abortSignal)<AbortSignal>();
    return (await client.query<{ id: number }>("select 1 as id")).rows[0]!;
  });
  inferred(booked)<{ id: number }>();
  const single = { connect: async () => await pool.connect() };
  inferred(await tape.transaction("book", single, (client) => inferred(client)<pg.PoolClient>()))<void>();
  const seat = await tape.transaction("seat", database, (db) => {
    inferred(db)<DatabaseSync>();
    return 12n;
  });
  inferred(seat)<bigint>();
  const options = { retry: { attempts: 3 }, timeout: "1s" } as const;
  inferred(await tape.transaction("book", pool, async () => 1, options))<number>();
  inferred(await tape.transaction("seat", database, () => "12A", options))<string>();
});

export const positive = workflow("positive", async (tape, input: { day: string }) => {
  inferred(input)<{ day: string }>();
  inferred(await mail({ to: "a" }))<{ id: number }>();
  inferred(mail.with({ to: "a" }))<EffectCall<{ id: number }>>();
  inferred(await tape.effect(mail.with({ to: "a" })))<{ id: number }>();
  inferred(await tape.attempt(mail.with({ to: "a" })))<EffectResult<{ id: number }>>();
  inferred(await tape.gate(yes))<GateAnswer<{ ok: boolean }>>();
  inferred(await tape.step("s", () => 1))<number>();
  inferred(await tape.step("s", async () => "a"))<string>();
  inferred(await tape.decide("d", async () => ({ buy: true })))<{ buy: boolean }>();
  inferred(await tape.sample("s", () => new Date(0)))<Date>();
  inferred(await tape.spawn(child, 1))<Child<string>>();
  inferred(await (await tape.spawn(child, 1)).result())<string>();
  inferred(await tape.race([mail({ to: "a" }), tape.step("s", () => 1)]))<number | { id: number }>();
  inferred(await tape.any([tape.step("s", () => 1), tape.step("t", () => "a")]))<string | number>();
  inferred(await Promise.all([tape.step("s", () => 1), tape.step("t", () => "a")]))<[number, string]>();
  inferred(await tape.budget.spend({ usd: 1 }, async () => ({ cost: { usd: 1 }, value: 7n })))<bigint>();
  inferred(tape.now())<number>();
  inferred(tape.patched("p"))<boolean>();
  inferred(tape.uuid())<string>();
  inferred(tape.random())<number>();
  inferred(tape.runId)<string>();
  inferred(tape.abortSignal)<AbortSignal>();
  inferred(tape.fence)<Fence>();
  inferred(await tape.values.get("k"))<{ readonly version: number; readonly value: unknown } | undefined>();
  inferred(await tape.values.put("k", 1, 0))<number>();
  inferred(tape.progress("half"))<void>();
  return { done: true };
});

/** The observer confirms the result of the body, and the compensation receives it. */
export const whole = effect("whole", async (a: { n: number }) => ({ id: `${a.n}` }), {
  businessKey: (a) => {
    inferred(a)<{ n: number }>();
    return String(a.n);
  },
  observe: (a, fx) => {
    inferred(a)<{ n: number }>();
    inferred(fx.businessKey)<string | undefined>();
    return a.n > 0 ? outcome.confirmed({ id: "1" }) : outcome.absent();
  },
  compensate: {
    run: (a, result) => {
      inferred(a)<{ n: number }>();
      inferred(result)<{ id: string }>();
    },
    observe: ({ args, result }) => {
      inferred(args)<{ n: number }>();
      inferred(result)<{ id: string }>();
      return outcome.inconclusive("cannot see it");
    },
  },
});

/** Any validator that implements Standard Schema defines the type of the input. */
export const checked = workflow("checked", async (_tape, input) => input.day, {
  input: z.object({ day: z.string() }),
});
const grade = gate("grade", { schema: z.number().int() });

export async function programs(app: Tape): Promise<void> {
  const run = await app.start(positive, { day: "d" });
  inferred(await run.result())<{ done: boolean }>();
  inferred(await (await app.start(checked, { day: "d" })).result())<string>();
  await app.signal(run.id, yes, { ok: true });
  await app.signal(run.id, grade, 1);
  createRunner({ workflows: [positive, child, checked], effects: [mail, whole] });

  // @ts-expect-error the input needs a day
  await app.start(positive, {});
  // @ts-expect-error the day is a string
  await app.start(positive, { day: 1 });
  // @ts-expect-error the schema requires a string
  await app.start(checked, { day: 1 });
  // @ts-expect-error the value does not match the gate
  await app.signal(run.id, yes, { ok: "true" });
  // @ts-expect-error the value does not match the schema
  await app.signal(run.id, grade, "A");
  // @ts-expect-error expects a gate, not its name
  await app.signal(run.id, "yes", { ok: true });
  // @ts-expect-error a cancellation needs a reason
  await app.cancel(run.id);
  // @ts-expect-error a program needs a runner
  await Tape.open({ store: "memory:" });
}

export const negative = workflow("negative", async (tape, _input: undefined) => {
  // @ts-expect-error an argument is missing
  await mail({});
  // @ts-expect-error an argument has the wrong type
  mail.with({ to: 1 });
  // @ts-expect-error expects an effect call, not an effect
  await tape.effect(mail);
  // @ts-expect-error a promise is not an effect call: it has been sent already
  await tape.effect(mail({ to: "a" }));
  // @ts-expect-error expects a gate, not its name
  await tape.gate("yes");
  // @ts-expect-error not a duration
  await tape.sleep("1 hour");
  // @ts-expect-error a gate binds an effect call
  await tape.gate(yes, { binds: mail });
  const answer = await tape.gate(yes, { timeout: "1h" });
  // @ts-expect-error it may have timed out: check the status first
  answer.value.ok;
  const attempted = await tape.attempt(mail.with({ to: "a" }));
  // @ts-expect-error it may have failed: check the status first
  attempted.value.id;
  // @ts-expect-error the child's input is a number
  await tape.spawn(child, "1");
  // @ts-expect-error a step needs a name
  await tape.step(() => 1);
  // @ts-expect-error a write names the version that it replaces
  await tape.values.put("k", 1);
  // @ts-expect-error a call with a budget returns its cost
  await tape.budget.spend({ usd: 1 }, async () => ({ value: 1 }));
  inferred(await tape.race([() => tape.step("s", () => 1), tape.step("t", () => 2)]))<number>();
  inferred(await tape.lane("l", () => tape.step("s", () => 1)))<number>();
  // @ts-expect-error a race is between promises, or functions that return one
  await tape.race([1, 2]);
  // @ts-expect-error unknown field of a decision
  await tape.decide("d", (d) => d.record({ modell: "m-1" }));
  // @ts-expect-error now has no parameter
  tape.now(0);
});

// @ts-expect-error an effect without a body names its connector
effect("nothing", {});
// @ts-expect-error there are three semantics
effect("odd", async (_: number) => 1, { semantics: "exactly_once" });
effect("observed", async (_: number) => ({ id: 1 }), {
  businessKey: String,
  // @ts-expect-error an observer confirms what the body returns
  observe: () => outcome.confirmed({ id: "1" }),
});
createRunner({
  // @ts-expect-error a function is not a workflow
  workflows: [async () => 1],
});
