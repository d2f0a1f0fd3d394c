import { createRunner, effect, outcome, Tape, workflow } from "../../../src/exports/index.ts";
import { type Open, payload, payment } from "../system.ts";

const ten = workflow("ten", async (tape, _input: number) => {
  for (let k = 0; k < 10; k++) await tape.step(`step-${k}`, () => ({ ok: true, value: payload, at: k }));
});
const one = workflow("one", async (tape, _input: number) => tape.step("only", () => ({ ok: true, value: payload })));
const nap = workflow("nap", async (tape, due: number) => {
  await tape.sleepUntil(due);
  return Date.now();
});

/** Tape: embedded with its reactors (a file, a database), or a worker behind a server. */
export const open: Open = async ({ system, url, ttlSeconds }, world) => {
  // Not idempotent, so it says how to find out whether it happened: what docs/concepts.md asks for.
  const wire = effect("wire", (a: { run: string; ms: number }) => world.call(a.run, "wire", a.ms), {
    businessKey: (a) => a.run,
    observe: async (a) => (world.has(a.run, "wire") ? outcome.confirmed(`wire of ${a.run}`) : outcome.absent()),
    timeout: "2s",
    settleDelay: "1s",
  });
  const pay = workflow("pay", async (tape, run: string) => {
    for (const { step, ms } of payment) {
      if (step === "wire") {
        // Killed between the permission to send and the sending: after its deadline it is certain that nothing was sent.
        while ((await tape.attempt(wire.with({ run, ms }))).status === "failed");
      } else await tape.step(step, () => world.call(run, step, ms));
    }
  });
  const options = {
    runner: createRunner({ workflows: [ten, one, nap, pay], effects: [wire] }),
    concurrency: 5_000,
    leaseTtl: `${ttlSeconds}s` as const,
  };
  const app = system === "tape-remote" ? await Tape.connect(url, options) : await Tape.open({ ...options, store: url });
  return {
    pulls: false,
    concurrency: async () => {},
    async ten() {
      await (await app.start(ten, 1)).result();
      return {};
    },
    one: async () => (await app.start(one, 1)).result(),
    nap: async (due) => (await app.start(nap, due)).result(),
    pay: (id) => app.start(pay, id, { id }),
    close: () => app.close(),
  };
};
