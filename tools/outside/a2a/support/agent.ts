import { createServer } from "node:net";
import { AgentCard, SendMessageRequest } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";

/** A free port of the loopback. */
export const port = await new Promise<number>((resolve) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address() as { port: number };
    probe.close(() => resolve(port));
  });
});

export const card = AgentCard.fromJSON({
  ...{ name: "treasury", description: "Pays invoices.", version: "1.0.0" },
  supportedInterfaces: [{ url: `http://127.0.0.1:${port}`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true },
  skills: [],
});

/** Sends a text, and returns the words of the task: its result, or its question. */
export async function send(text: string, taskId = ""): Promise<{ taskId: string; words: unknown }> {
  const client = await new ClientFactory().createFromAgentCard(card);
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", taskId, parts: [{ text }] };
  const result = await client.sendMessage(SendMessageRequest.fromJSON({ message }));
  if (!("status" in result)) throw new Error("a message came in place of a task");
  const parts = result.artifacts[0]?.parts ?? result.status?.message?.parts;
  return { taskId: result.id, words: parts?.[0]?.content?.value };
}
