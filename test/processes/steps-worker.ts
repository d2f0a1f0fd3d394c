import { appendFileSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";

/** Runs with a step that hangs in its first process, and with one that fails twice. Each started body is a line. */
const [url = "", ledger = "", ttlMs = "", maxStallMs = "", start = "", label = ""] = process.argv.slice(2);
const wedged = label === "wedged";
let release = (_: string): void => {};
const line = (what: string, more: object): void =>
  appendFileSync(ledger, `${JSON.stringify({ what, label, at: systemClock.wall(), ...more })}\n`);

const hangs = workflow(
  "hangs",
  (tape, _: null) =>
    tape.step("import", () => {
      line("import", {});
      return wedged ? new Promise<string>((resolve) => (release = resolve)) : label;
    }),
  { maxStall: Number(maxStallMs) },
);

const retries = workflow("retries", (tape, _: null) =>
  tape.step(
    "rate",
    ({ attempt }) => {
      line("rate", { attempt });
      if (attempt > 3) return attempt;
      // The process of the test is killed during the third attempt.
      if (attempt === 3 && wedged) return new Promise<number>(() => {});
      throw new Error(`429, attempt ${attempt}`);
    },
    { retry: { attempts: 4, base: 50 } },
  ),
);

const runner = createRunner({ workflows: [hangs, retries] });
const app = await Tape.open({ store: url, runner, leaseTtl: Number(ttlMs), log: "silent" });
if (start === "hangs") await app.start(hangs, null, { id: "r" });
if (start === "retries") await app.start(retries, null, { id: "r" });
process.on("message", () => {
  release("too late");
  setTimeout(() => process.send!({ result: "released" }), 200);
});
process.send!({ result: "ready" });
