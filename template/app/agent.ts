import { createRunner, effect, outcome, workflow } from "durable-tape";
import { type Bank, bankIn, type Order } from "./bank.ts";

/** Everything that the agent does. The bank is handed in, so that a test can hand in another. */
export function agentOn(bank: Bank) {
  const wire = effect("bank.wire", (order: Order) => bank.wire(order), {
    businessKey: (order) => order.invoice,
    // After a lost answer nobody asks again: somebody looks.
    observe: async (order) => {
      const found = await bank.find(order.invoice);
      return found === undefined ? outcome.absent() : outcome.confirmed(found);
    },
  });

  const pay = workflow("pay", async (tape, order: Order) => {
    await tape.step("check", () => {
      if (!(order.amount > 0)) throw new Error("nothing to pay");
    });
    // It surely did not happen: trying again is a decision of this code.
    let wired = await tape.attempt(wire.with(order));
    for (let tries = 1; wired.status === "failed" && tries < 3; tries++) wired = await tape.attempt(wire.with(order));
    if (wired.status === "failed") throw new Error(`the wire failed: ${wired.reason}`);
    return wired.value;
  });

  return { pay, runner: createRunner({ workflows: [pay], effects: [wire] }) };
}

export const buildRunner = () => agentOn(bankIn("./.tape/world.jsonl")).runner;
