import { createRunner, effect, gate, outcome, workflow } from "../../src/exports/index.ts";

export const go = gate<string>("go");

const read = effect("soak.read", async (n: number) => n, { semantics: "read" });
const put = effect("soak.put", async (n: number) => n, { semantics: "idempotent", dispatch: "outbox" });
// Observation always confirms: correctness is judged by `npm run chaos`, not here.
const wire = effect("soak.wire", async (a: { key: string }) => a.key, {
  businessKey: (a) => a.key,
  observe: async (a) => outcome.confirmed(a.key),
  compensate: { run: async () => {}, semantics: "idempotent" },
});

export const steps = workflow("soak.steps", async (tape, n: number) => {
  for (let k = 0; k < 10; k++) await tape.step(`step-${k}`, () => ({ n, k, text: "x".repeat(90) }));
});
const effects = workflow("soak.effects", async (tape, n: number) => {
  const value = await tape.effect(read.with(n));
  await tape.effect(wire.with({ key: tape.runId }));
  return tape.effect(put.with(value));
});
const nap = workflow("soak.nap", async (tape, n: number) => {
  await tape.sleep(50 + (n % 10) * 50);
  return tape.now();
});
export const gated = workflow("soak.gated", async (tape, _n: number) => tape.gate(go, { timeout: "30s" }));
const saga = workflow("soak.saga", async (tape, _n: number) => {
  await tape.effect(wire.with({ key: `${tape.runId}/a` }));
  await tape.effect(wire.with({ key: `${tape.runId}/b` }));
  throw new Error("compensate");
});
const parent = workflow("soak.parent", async (tape, n: number) => {
  const children = [await tape.spawn(nap, n), await tape.spawn(steps, n)];
  return Promise.all(children.map((child) => child.result()));
});
const values = workflow("soak.values", async (tape, n: number) => {
  const key = `soak-${n % 20}`;
  const current = await tape.values.get(key);
  return tape.values.put(key, n, current?.version ?? 0).catch(() => "another run was faster");
});

/** One of each kind in turn. Every other run has plain steps, because their latency is measured. */
export const kinds = [steps, effects, steps, nap, steps, gated, steps, saga, steps, parent, steps, values] as const;
export const runner = () =>
  createRunner({ workflows: [steps, effects, nap, gated, saga, parent, values], effects: [read, put, wire] });
