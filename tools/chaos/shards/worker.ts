// A worker of `npm run chaos -- shards`: drives the runs of one tenant, and writes every call of its effect to a file.
import { appendFileSync, readFileSync } from "node:fs";
import { Tape } from "../../../src/host/tape.ts";
import { effect } from "../../../src/sdk/effect.ts";
import { outcome } from "../../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../../src/sdk/workflow.ts";

const [url = "", tenant = "", ledger = "", steps = "0"] = process.argv.slice(2);

/** Non-idempotent: a second line with the same key is a payment made twice. */
const pay = effect(
  "pay",
  (n: number, fx) => {
    appendFileSync(ledger, `paid ${fx.businessKey}\n`);
    return n;
  },
  {
    businessKey: (n) => `${tenant} ${n}`,
    observe: (n, fx) =>
      readFileSync(ledger, "utf8").includes(`paid ${fx.businessKey}\n`) ? outcome.confirmed(n) : outcome.absent(),
    timeout: 500,
    settleDelay: 100,
  },
);
const work = workflow("work", async (tape, n: number) => {
  for (let k = 0; k < 3; k++) await tape.step(`step ${k}`, () => k);
  await tape.effect(pay.with(n));
  appendFileSync(ledger, `ended ${tenant} ${n}\n`);
  return n;
});
/** Steps without end, to measure their rate. */
const busy = workflow("busy", async (tape, of: number) => {
  for (let k = 0; k < of; k++) {
    await tape.step("tick", () => k);
    if (k % 10 === 9) process.send?.({ steps: 10 });
  }
});

const runner = createRunner({ workflows: [work, busy], effects: [pay] });
const app = await Tape.open({ store: url, tenant, runner, log: "silent", leaseTtl: "3s" });
if (Number(steps) > 0) await app.start(busy, Number(steps), { id: "busy" });
process.send?.({ ready: true });
process.on("SIGTERM", () => void app.close().then(() => process.exit(0)));
