import { createRunner, effect, outcome, workflow } from "durable-tape";
import { type Bank, bankIn, type Order } from "./bank.ts";

/** The agent's workflow and effect. The bank is injected, so that a test can replace it. */
export function agentOn(bank: Bank) {
  const wire = effect("bank.wire", (order: Order) => bank.wire(order), {
    businessKey: (order) => order.invoice,
    // A wire that has not reached the bank 16 s after it was sent never will. Then it may be sent again.
    timeout: "15s",
    settleDelay: "1s",
    // After a lost response Tape asks the bank instead of paying again.
    observe: async (order) => {
      const found = await bank.find(order.invoice);
      return found === undefined ? outcome.absent() : outcome.confirmed(found);
    },
  });

  const pay = workflow("pay", async (tape, order: Order) => {
    await tape.step("check", () => {
      if (!(order.amount > 0)) throw new Error("nothing to pay");
    });
    // A failed attempt did not happen, so this code may try again.
    let wired = await tape.attempt(wire.with(order));
    for (let tries = 1; wired.status === "failed" && tries < 3; tries++) wired = await tape.attempt(wire.with(order));
    if (wired.status === "failed") throw new Error(`the wire failed: ${wired.reason}`);
    return wired.value;
  });

  return { pay, runner: createRunner({ workflows: [pay], effects: [wire] }) };
}

/** What `npm start` runs. `BANK_SECONDS=0 npm start` has a fast bank. */
export const buildRunner = () => agentOn(bankIn("./.tape/world.jsonl", Number(process.env.BANK_SECONDS ?? 10))).runner;
