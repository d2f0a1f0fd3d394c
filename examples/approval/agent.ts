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

/** The lead approves an expense. After two days without an answer the director may; after two more, it is rejected. */
export function approvalOn({ payroll }: World) {
  const pay = effect("payroll.pay", (expense: Expense) => payroll.pay(expense), {
    businessKey: (expense) => expense.id,
    observe: async (expense) => ((await payroll.paid(expense.id)) ? outcome.confirmed(undefined) : outcome.absent()),
  });

  const expense = workflow("expense", async (tape, input: Expense) => {
    const call = pay.with(input);
    // The approval is bound to this payment of this amount and cannot be used for another one.
    const options = { binds: call, payload: input, timeout: "2d" } as const;
    let answer = await tape.gate(lead, options);
    if (answer.status === "timeout") answer = await tape.gate(director, options);
    if (answer.status === "timeout") return { paid: false, why: "no answer" };
    if (!answer.value.approved) return { paid: false, why: `rejected by ${answer.value.by}` };

    let paid = await tape.attempt(call);
    if (paid.status === "failed" && paid.reason !== "definite") paid = await tape.attempt(call);
    return paid.status === "confirmed"
      ? { paid: true, why: `approved by ${answer.value.by}` }
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
