export { type Approval, type ApprovalRequest, toolApproval } from "../agent/approval.ts";
export type { Price, Prices } from "../agent/price.ts";
export type { DurableToolsOptions, ToolPolicy } from "../agent/tool-policy.ts";
export type { DurableModelOptions } from "../ai/model.ts";
export { durableAgent, type StreamingAgent } from "../mastra/agent.ts";
export { durableModel, type RouterModel } from "../mastra/model.ts";
export { TapeStorage } from "../mastra/storage.ts";
export { durableTools, type ToolKit, type ToolPolicies } from "../mastra/tools.ts";
export type { ValuesOf } from "../store/value-keys.ts";
