import type { TapeContext } from "../src/sdk/context.ts";
import { askGate } from "./ask-gate.ts";

/** What the talker does between its waits. */
export type TalkOp =
  | { readonly op: "publish"; readonly name: string; readonly value: number }
  | { readonly op: "label"; readonly value: number }
  | { readonly op: "answer" }
  | { readonly op: "callback" };

/** `onToken` receives the token of a callback, also on replay. */
export async function runTalkOp(tape: TapeContext, op: TalkOp, onToken: (token: string) => void): Promise<unknown> {
  switch (op.op) {
    case "publish":
      tape.publish(op.name, op.value);
      return op.value;
    case "label":
      // Each label is removed two later, and not set again: one that a stale driver brings back stays.
      tape.label({ [`p${op.value}`]: "yes", [`p${op.value - 2}`]: undefined });
      return op.value;
    case "answer":
      return answerRequest(tape);
    case "callback": {
      const hook = await tape.callback("hook");
      onToken(hook.token);
      return hook.result();
    }
  }
}

/** Answers one request, after a step; odd senders are rejected. */
async function answerRequest(tape: TapeContext): Promise<unknown> {
  const request = await tape.gate(askGate);
  if (request.status !== "received") return request.status;
  const { key, from } = request.value;
  await tape.step("consider", () => key);
  if (from % 2 === 1) request.reject(new Error(`rejected ${key} from ${from}`));
  else request.reply({ to: key, from });
  return key;
}
