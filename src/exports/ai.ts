export { type Approval, type ApprovalRequest, toolApproval } from "../agent/approval.ts";
export type { Message, ModelRecord, Part, RequestNote } from "../agent/conversation.ts";
export type { ModelOptions } from "../agent/model-call.ts";
export type { Price, Prices, Usage } from "../agent/price.ts";
export type { DurableToolsOptions, ToolArgs, ToolPolicy } from "../agent/tool-policy.ts";
export { withApprovals } from "../ai/approvals.ts";
export {
  type ChatApp,
  type ChatRequest,
  type ChatRoutes,
  type ChatRoutesOptions,
  chatRoutes,
  type UiMessage,
} from "../ai/chat-routes.ts";
export { type DurableModelOptions, durableModel } from "../ai/model.ts";
export { durableEmbedding, durableImage } from "../ai/more-models.ts";
export type { LanguageModelLike } from "../ai/shapes.ts";
export {
  asTool,
  durableTools,
  type ExecutedTool,
  type ToolKit,
  type ToolLike,
  type ToolPolicies,
  type WorkflowTool,
} from "../ai/tools.ts";
export { type UiChunk, type UiStreamOptions, uiResponse, uiStream } from "../ai/ui-stream.ts";
