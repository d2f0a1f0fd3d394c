import { appendFileSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";

/** Runs with long steps. Each started body is written to the ledger, with its process and time. */
const [url = "", ledger = "", ttlMs = "", start = "", label = ""] = process.argv.slice(2);
const long = workflow("long", (tape, n: number) =>
  tape.step("body", async () => {
    appendFileSync(ledger, `${JSON.stringify({ label, n, at: systemClock.wall() })}\n`);
    await systemClock.sleep(60_000);
  }),
);
const other = workflow("other", (tape, _: null) => tape.step("quick", () => label));
const runner = createRunner({ workflows: [long, other] });
const app = await Tape.open({ store: url, runner, leaseTtl: Number(ttlMs), log: "silent" });
await Promise.all(Array.from({ length: Number(start) }, (_, n) => app.start(long, n, { id: `long-${n}` })));
process.on("message", async () => {
  const startedAt = systemClock.mono();
  await (await app.start(other, null)).result();
  process.send!({ result: "done", ms: systemClock.mono() - startedAt });
});
process.send!({ result: "ready" });
