import type { Tape } from "../src/host/tape.ts";
import { workflow } from "../src/sdk/workflow.ts";

/** What each step records: about as much as a small answer of a service. */
export const payload = "x".repeat(90);
let executed = 0;

/** Ten steps, one after the other: the workload of every benchmark that drives runs. */
export const ten = workflow("ten", async (tape, _input: number) => {
  let last: { at: number } | undefined;
  for (let k = 0; k < 10; k++) {
    last = await tape.step(`step-${k}`, () => {
      executed++;
      return { ok: true, value: payload, at: k };
    });
  }
  return last?.at;
});

/** Steps per second with `runs` concurrent runs, each started when the previous one has ended. */
export async function stepsFor(app: Tape, w: number, ms: number): Promise<number> {
  const started = performance.now();
  const before = executed;
  await Promise.all(
    Array.from({ length: w }, async (_, k) => {
      while (performance.now() < started + ms) await (await app.start(ten, k)).result();
    }),
  );
  return ((executed - before) * 1000) / (performance.now() - started);
}
