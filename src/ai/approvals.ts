import { approvedCall, awaitApproval } from "../agent/approval.ts";
import type { ToolPolicy } from "../agent/tool-policy.ts";
import { TapeError } from "../model/errors.ts";
import { current } from "../sdk/current.ts";
import type { Content } from "./shapes.ts";

/** The part of a ToolLoopAgent that is used. */
interface GeneratingAgent<R> {
  generate(options: never): PromiseLike<R>;
}

/** The parts of a result of AI SDK 6 or 7 that are used. */
interface AgentResult {
  readonly content: readonly Content[];
  readonly response: { readonly messages: readonly unknown[] };
}

interface RequestedApproval extends Content {
  readonly approvalId: string;
  readonly isAutomatic?: boolean;
  readonly reason?: string;
  readonly toolCall: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown };
}

/** Rounds of approvals in one call; an agent that asks for more has lost its way. */
const maxRounds = 100;

/**
 * Generates with an agent whose tools have the SDK's own approval settings (`toolApproval`, `needsApproval`). Where the
 * SDK stops to request approvals, a gate opens for each call, and the agent continues with the answers.
 *
 * @example
 * const chat = workflow("chat", async (_tape, messages: ModelMessage[]) => (await withApprovals(agent, messages)).text);
 */
export async function withApprovals<R>(
  agent: GeneratingAgent<R>,
  messages: readonly unknown[],
  options: Pick<ToolPolicy, "approvers" | "approvalTimeout"> = {},
): Promise<R> {
  const conversation = [...messages];
  for (let round = 0; round < maxRounds; round++) {
    const result = await agent.generate({ messages: conversation } as never);
    const { content, response } = result as unknown as AgentResult;
    const requested = content.filter(isRequested);
    if (requested.length === 0) return result;
    conversation.push(...response.messages);
    conversation.push({ role: "tool", content: await Promise.all(requested.map((one) => answerTo(one, options))) });
  }
  throw new TapeError("TAPE_BAD_INPUT", `the agent has requested approvals ${maxRounds} times`, { field: "agent" });
}

const isRequested = (part: Content): part is RequestedApproval =>
  part.type === "tool-approval-request" && part.isAutomatic !== true;

async function answerTo(
  { approvalId, toolCall, reason: why }: RequestedApproval,
  options: Pick<ToolPolicy, "approvers" | "approvalTimeout">,
): Promise<Content> {
  const { toolCallId: call, toolName: tool, input } = toolCall;
  const tape = current();
  const payload = { tool, input, call, ...(why !== undefined && { why }) };
  const answer = await tape.lane(`approval ${call}`, () =>
    awaitApproval(tape, approvedCall(tool, { call, input }), payload, options),
  );
  const { approved, reason } = answer ?? { approved: false, reason: "not approved in time" };
  return { type: "tool-approval-response", approvalId, approved, ...(reason !== undefined && { reason }) };
}
