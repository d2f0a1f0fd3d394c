import type { AgentOutputItem } from "@openai/agents";
import { expect, it } from "vitest";
import { groupsOf, itemsOf, messageOf, partsOf } from "../src/openai-agents/items.ts";

const output: AgentOutputItem[] = [
  {
    type: "reasoning",
    id: "rs",
    content: [{ type: "input_text", text: "so" }],
    rawContent: [{ type: "reasoning_text", text: "raw" }],
    providerData: { encrypted: "e" },
  },
  { type: "reasoning", content: [] },
  {
    type: "message",
    id: "m1",
    role: "assistant",
    status: "completed",
    phase: "commentary",
    content: [
      { type: "output_text", text: "a", providerData: { annotations: [1] } },
      { type: "refusal", refusal: "no" },
    ],
  },
  { role: "assistant", status: "completed", content: [{ type: "output_text", text: "without a type" }] },
  {
    type: "message",
    role: "assistant",
    status: "completed",
    content: [
      { type: "audio", audio: "AAAA", format: "wav", transcript: "hm" },
      { type: "image", image: "https://x/y.png" },
    ],
  },
  {
    type: "hosted_tool_call",
    id: "h",
    name: "web_search_call",
    status: "completed",
    output: "found",
    providerData: { q: 1 },
  },
  {
    type: "function_call",
    id: "f",
    callId: "c1",
    name: "pay",
    status: "completed",
    arguments: '{"a":1}',
    providerData: { p: 1 },
  },
  { type: "function_call", callId: "c2", name: "pay", status: "completed", arguments: '{ "a": 1 }' },
  { type: "function_call", callId: "c3", name: "pay", status: "completed", arguments: "{broken" },
  { type: "computer_call", callId: "c4", status: "completed", action: { type: "screenshot" } },
  { type: "compaction", encrypted_content: "xyz" },
];

it.each(output.map((item) => [JSON.stringify(item), item] as const))("restores %s", (_, item) => {
  expect(itemsOf({ role: "assistant", parts: partsOf(item as never) })).toEqual([item]);
});

it("restores all of them in one answer", () => {
  const record = JSON.parse(
    JSON.stringify({ role: "assistant", parts: output.flatMap((item) => partsOf(item as never)) }),
  );
  expect(itemsOf(record)).toEqual(output);
});

it("reads an answer and what follows it as messages", () => {
  const groups = groupsOf("be brief", [
    { role: "user", content: "pay" },
    output[2] as never,
    output[6] as never,
    { type: "function_call_result", callId: "c1", name: "pay", status: "completed", output: "paid" },
  ]);
  const messages = groups.map(messageOf);
  expect(messages.map(({ role, parts }) => [role, parts.map(({ type }) => type)])).toEqual([
    ["system", ["text"]],
    ["user", ["text"]],
    ["assistant", ["text", "text", "tool_call"]],
    ["tool", ["tool_result"]],
  ]);
});
