import { strict as assert } from "node:assert";
import { describe, it } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { crashAtEveryBoundary } from "../../testkit/kit/crash.ts";
import { WorldLedger } from "../../testkit/kit/world.ts";
import { freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";

const postgresUrl = ownPostgres(18);

const world = new WorldLedger();
const wire = effect("wire", (n: number, fx) => world.apply("wire", fx, n, () => n), {
  businessKey: (n) => `invoice ${n}`,
  observe: (_, fx) => {
    const found = world.find("wire", fx.businessKey);
    return found === undefined ? outcome.absent() : outcome.confirmed(n(found.result));
  },
  timeout: 200,
  settleDelay: 100,
});
const n = (result: unknown): number => result as number;
const pay = workflow("pay", async (tape, amount: number) => {
  const doubled = await tape.step("double", () => amount * 2);
  await tape.sleep(20);
  return tape.effect(wire.with(doubled));
});
const runner = createRunner({ workflows: [pay], effects: [wire] });

describe("crash at every boundary on PostgreSQL, in real time", () => {
  it("a payment survives a crash before and after its effect", { timeout: 120_000 }, async () => {
    const url = `${await freshDatabase(postgresUrl())}?transaction_bound_ms=300`;
    const report = await crashAtEveryBoundary({
      workflow: pay,
      input: 2,
      runner,
      ledger: world,
      openStore: () => openPostgres({ url }),
      realTime: true, // each round has a tenant of its own
      leaseTtlMs: 700,
      only: (boundary) => /effect/.test(boundary), // each takes a lease term of real time
      modes: ["crash"], // zombies in real time are in test/processes
    });
    assert.deepEqual([report.reached, report.rounds], [2, 2]);
  });
});
