// In your own project: from "durable-tape".
import {
  createRunner,
  DefiniteFailure,
  effect,
  gate,
  outcome,
  type Runner,
  workflow,
} from "../../src/exports/index.ts";
import { addOnce, type Ledger, memoryLedger } from "../ledger.ts";
import { type Bank, bankOn, type Receipt, type WireOrder } from "./bank.ts";

/** The external systems of the agent, injected so that a test can replace them. */
export interface World {
  readonly bank: Bank;
  /** The general ledger; rejects entries on a closed day. */
  readonly books: { enter(key: string, receipt: Receipt): Promise<void> };
  readonly model: { plan(day: string): Promise<{ account: string; amount: number; why: string; tokens: number }> };
}

/** The approval of the CFO. The type parameter is the type of the signal. */
export const cfo = gate<{ approved: boolean; note?: string }>("cfo");

/** decide → approve → wire → book. If the booking is rejected, the wire is reversed. */
export function treasuryOn({ bank, books, model }: World) {
  const wire = effect("bank.wire", (order: WireOrder) => bank.wire(order), {
    businessKey: (order) => order.invoice,
    // The bank pays twice if it is called twice. After a lost response Tape observes instead of calling again.
    observe: async (order) => {
      const found = await bank.find(order.invoice);
      return found === undefined ? outcome.absent() : outcome.confirmed(found);
    },
    compensate: {
      run: (_order, receipt) => bank.reverse(receipt),
      observe: async ({ result }) => ((await bank.reversed(result)) ? outcome.confirmed(null) : outcome.absent()),
    },
    timeout: "10s",
    settleDelay: "20s",
  });

  const book = effect("books.enter", (receipt: Receipt, fx) => books.enter(fx.key, receipt), {
    semantics: "idempotent", // the books deduplicate by key
  });

  const treasury = workflow("treasury", async (tape, input: { day: string }) => {
    const plan = await tape.decide("plan", async (decision) => {
      const { why, tokens, ...plan } = await model.plan(input.day);
      decision.record({ model: "planner-1", request: input, rationale: why, usage: { tokens } });
      return plan;
    });

    const call = wire.with({ invoice: `sweep-${input.day}`, ...plan });
    const answer = await tape.gate(cfo, { binds: call, payload: plan, timeout: "24h" });
    if (answer.status === "timeout" || !answer.value.approved) return { done: false as const };

    // It did not happen, and the bank did not refuse it. Trying again is a new decision under a new key, made here.
    let wired = await tape.attempt(call);
    for (let tries = 1; wired.status === "failed" && wired.reason !== "definite" && tries < 3; tries++)
      wired = await tape.attempt(call);
    if (wired.status === "failed")
      throw new DefiniteFailure(`the wire failed: ${wired.reason}`, { cause: wired.error });

    await book(wired.value);
    return { done: true as const, receipt: wired.value };
  });

  return { treasury, wire, book, runner: createRunner({ workflows: [treasury], effects: [wire, book] }) };
}

/** A fake world on a ledger: what an auditor would see. */
export function worldOn(ledger: Ledger, options: { readonly closed?: boolean } = {}): World {
  return {
    bank: bankOn(ledger),
    books: {
      async enter(key, receipt) {
        if (options.closed === true) throw new DefiniteFailure("the day is closed");
        addOnce(ledger, { kind: "book", subject: receipt.invoice, key });
      },
    },
    model: { plan: async () => ({ account: "reserve", amount: 250_000, why: "more cash than needed", tokens: 812 }) },
  };
}

export const buildRunner = (world: World = worldOn(memoryLedger())): Runner => treasuryOn(world).runner;
