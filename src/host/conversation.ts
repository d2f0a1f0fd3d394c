import { type ConversationPage, type ConversationRequest, readConversation } from "../operator/conversation.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import type { Tape } from "./tape.ts";

/**
 * The conversation of a run with its models, page by page: messages, answers, tool calls with their effects and
 * approvals, tokens, costs and attempts. It is rebuilt from the run's journal.
 *
 * @example
 * const { turns, sums, next } = await conversationOf(app, "chat-7", { limit: 20 });
 */
export function conversationOf(
  app: Pick<Tape, "store" | "tenant">,
  run: string,
  request: ConversationRequest = {},
): Promise<ConversationPage> {
  assertKnownKeys("conversationOf", request, ["from", "limit", "content"]);
  return readConversation(app.store, app.tenant, run, request);
}
