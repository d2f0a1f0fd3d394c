// In your own project: from "durable-tape".
import { createRunner, effect, gate, outcome, type Runner, workflow } from "../../src/exports/index.ts";
import { findEntry, type Ledger, memoryLedger } from "../ledger.ts";

export interface Expense {
  readonly id: string;
  readonly who: string;
  readonly amount: number;
}

export interface World {
  readonly payroll: { pay(expense: Expense): Promise<void>; paid(id: string): Promise<boolean> };
}

export interface Answer {
  readonly approved: boolean;
  readonly by: string;
}

export const lead = gate<Answer>("lead");
export const director = gate<Answer>("director");

/** A person decides. After two days without an answer somebody else is asked; after two more, the answer is no. */
export function approvalOn({ payroll }: World) {
  const pay = effect("payroll.pay", (expense: Expense) => payroll.pay(expense), {
    businessKey: (expense) => expense.id,
    observe: async (expense) => ((await payroll.paid(expense.id)) ? outcome.confirmed(undefined) : outcome.absent()),
  });

  const expense = workflow("expense", async (tape, input: Expense) => {
    const act = pay.with(input);
    // Bound: the approval holds for this payment of this amount, and cannot be used for another one.
    const ask = { binds: act, payload: input, timeout: "2d" } as const;
    let answer = await tape.gate(lead, ask);
    if (answer.status === "timeout") answer = await tape.gate(director, ask);
    if (answer.status === "timeout") return { paid: false, why: "nobody answered" };
    if (!answer.value.approved) return { paid: false, why: `${answer.value.by} said no` };

    let paid = await tape.attempt(act);
    if (paid.status === "failed" && paid.reason !== "definite") paid = await tape.attempt(act);
    return paid.status === "confirmed"
      ? { paid: true, why: `${answer.value.by} said yes` }
      : { paid: false, why: `the payment failed: ${paid.reason}` };
  });

  return { expense, pay, runner: createRunner({ workflows: [expense], effects: [pay] }) };
}

export function worldOn(ledger: Ledger): World {
  return {
    payroll: {
      pay: async ({ id, amount }) => ledger.add({ kind: "pay", subject: id, detail: amount }),
      paid: async (id) => findEntry(ledger, "pay", id) !== undefined,
    },
  };
}

export const buildRunner = (world: World = worldOn(memoryLedger())): Runner => approvalOn(world).runner;
