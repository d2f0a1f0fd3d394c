import assert from "node:assert/strict";
import { test } from "node:test";
import { crashAtEveryBoundary } from "durable-tape/testing";
import { agentOn } from "../app/agent.ts";
import type { Bank, Receipt } from "../app/bank.ts";

test("pays the invoice once, wherever the process dies", async () => {
  const paid: Receipt[] = [];
  const bank: Bank = {
    async wire({ invoice }) {
      const receipt = { id: `W-${paid.length + 1}`, invoice };
      paid.push(receipt);
      return receipt;
    },
    async find(invoice) {
      return paid.find((receipt) => receipt.invoice === invoice);
    },
  };
  const { pay, runner } = agentOn(bank);
  // Runs the workflow once per store call and effect, and crashes it just before and just after each.
  const report = await crashAtEveryBoundary({
    workflow: pay,
    input: { invoice: "7", amount: 250 },
    runner,
    fresh: () => {
      paid.length = 0;
    },
    modes: ["crash"],
    check: ({ run }) => {
      assert.equal(run.status, "COMPLETED");
      assert.equal(paid.length, 1);
    },
  });
  assert.ok(report.rounds > 10);
});
