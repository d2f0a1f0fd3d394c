import type { TaskOutput, WireMessage } from "durable-tape/a2a";

/** What an agent does with one message. Each agent carries it out by its own means. */
export interface Scenario {
  /** Words that are written one after the other before the task ends. */
  readonly words?: readonly string[];
  readonly waitMs?: number;
  /** The task waits for its client, with this question. */
  readonly ask?: string;
  readonly reject?: string;
  readonly fail?: string;
  /** How the task completes. */
  readonly output?: TaskOutput;
}

const text = (words: string): TaskOutput => ({
  artifacts: [{ artifactId: "result", parts: [{ text: words, mediaType: "text/plain" }] }],
});
const file = { filename: "output.txt", mediaType: "text/plain" };

/** By name; the first three groups are those of the protocol's own compatibility kit. */
const scenarios: Readonly<Record<string, Scenario>> = {
  "complete-task": { output: { message: "Hello from TCK" } },
  "artifact-text": { output: text("Generated text content") },
  "artifact-file-url": {
    output: { artifacts: [{ artifactId: "result", parts: [{ url: "https://example.com/output.txt", ...file }] }] },
  },
  "artifact-file": { output: { artifacts: [{ artifactId: "result", parts: [{ raw: "SGVsbG8=", ...file }] }] } },
  "artifact-data": {
    output: {
      artifacts: [
        { artifactId: "result", parts: [{ data: { key: "value", count: 42 }, mediaType: "application/json" }] },
      ],
    },
  },
  "input-required": { ask: "Please provide more input" },
  "reject-task": { reject: "rejected" },
  "stream-001": { output: text("Stream hello from TCK") },
  "stream-003": { output: text("Stream task lifecycle") },
  "stream-ordering-001": { output: text("Ordered output") },
  "stream-artifact-text": { output: text("Streamed text content") },
  "stream-artifact-file": { output: { artifacts: [{ artifactId: "result", parts: [{ raw: "SGVsbG8=", ...file }] }] } },
  "stream-artifact-chunked": { words: ["chunk-1 ", "chunk-2"], output: text("chunk-1 chunk-2") },
  "resubscribe-message-id": { waitMs: 4_000, output: { message: "resumed" } },
  slow: { waitMs: 400, output: text("slowly done") },
  endless: { waitMs: 600_000 },
  fail: { fail: "out of paper" },
};

/** The compatibility kit names the scenario in the id of the message, everyone else in its words. */
export function scenarioOf({ messageId, parts = [] }: WireMessage): Scenario {
  const words = parts.map((part) => part.text ?? "").join(" ");
  const name = /^(?:tck|test)-/.test(messageId) ? messageId.replace(/^(?:tck|test)-/, "") : words;
  const found = Object.keys(scenarios)
    .filter((one) => name.startsWith(one))
    .sort((a, b) => b.length - a.length)[0];
  return scenarios[found ?? "complete-task"]!;
}

/** Replies without a task; both agents leave that to the same code. */
export const directReply = ({ messageId }: { messageId: string }): string | undefined =>
  /^tck-message-response/.test(messageId) ? "Direct message response" : undefined;
