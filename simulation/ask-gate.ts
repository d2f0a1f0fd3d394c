import { gate, type ReplyGate } from "../src/sdk/gate.ts";

/** The value of a request. The talker rejects odd ones. */
export interface AskValue {
  readonly key: string;
  readonly from: number;
}

export const askName = "ask";
export const askGate: ReplyGate<AskValue, { readonly to: string; readonly from: number }> = gate(askName, {
  reply: true,
});
