import assert from "node:assert/strict";
import { test } from "node:test";
import { crashAtEveryBoundary } from "durable-tape/testing";
import { agentOn } from "../app/agent.ts";
import type { Bank, Receipt } from "../app/bank.ts";

test("whatever dies, wherever it dies: the invoice is paid once", async () => {
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
  // Runs the workflow once for each of its store calls and acts, crashed just before and just after it.
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
