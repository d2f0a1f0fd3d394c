// An agent that pays, as a program: `node treasury.ts`. It dies or stops at the point that KILL or STOP names, once.
import { existsSync, writeFileSync } from "node:fs";
import { createRunner, EffectFailed, effect, outcome, Tape, workflow } from "durable-tape";
import { type TaskInput, tapeRequestHandler, taskMessage } from "durable-tape/a2a";
import { Bank } from "./bank.ts";
import { serve } from "./serve.ts";

const bank = new Bank(process.env.BANK!);
const mark = `${process.env.BANK!}.point`;

function point(name: string): void {
  const signal = process.env.KILL === name ? "SIGKILL" : process.env.STOP === name ? "SIGSTOP" : undefined;
  if (signal === undefined || existsSync(mark)) return;
  writeFileSync(mark, name);
  process.kill(process.pid, signal);
}

const pay = effect(
  "pay",
  ({ invoice }: { invoice: string }) => {
    point("before the payment");
    const receipt = bank.pay(invoice);
    point("after the payment");
    return receipt;
  },
  {
    semantics: "non_idempotent",
    businessKey: ({ invoice }) => invoice,
    timeout: "1s",
    settleDelay: "0s",
    observe: ({ invoice }) =>
      bank.payments.includes(invoice) ? outcome.confirmed({ paid: invoice }) : outcome.absent(),
  },
);

const treasury = workflow("treasury", async (tape, task: TaskInput) => {
  await tape.decide("plan", async (decision) => {
    for (const word of ["I ", "look ", "it up."]) {
      await decision.emit(word);
      if (word === "look ") point("in mid-sentence");
    }
    return "pay";
  });
  const answer = await tape.gate(taskMessage, { payload: `Pay ${task.text}?` });
  point("after the answer");
  if (answer.status !== "received" || answer.value.text !== "yes") return "not paid";
  const { paid } = await paidOnce(task.text);
  await tape.step("after", () => point("after the effect"));
  return `paid ${paid}`;
});

/** A payment that was found not to have happened is made again. */
async function paidOnce(invoice: string): Promise<{ paid: string }> {
  for (;;) {
    try {
      return await pay({ invoice });
    } catch (error) {
      if (!(error instanceof EffectFailed)) throw error;
    }
  }
}

const app = await Tape.open({
  store: process.env.STORE!,
  runner: createRunner({ workflows: [treasury], effects: [pay] }),
  leaseTtl: "1s",
  log: "silent",
});
const start = app.start.bind(app);
app.start = (async (...args: Parameters<typeof start>) => {
  point("before the start");
  const run = await start(...args);
  point("after the start");
  return run;
}) as typeof app.start;
const signal = app.signal.bind(app);
app.signal = (async (...args: Parameters<typeof signal>) => {
  point("before the signal");
  await signal(...args);
  point("after the signal");
}) as typeof app.signal;
console.warn = console.error = () => {};
const { url } = await serve((card) => tapeRequestHandler(app, treasury, card));
console.log(url);
