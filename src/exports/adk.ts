export { DurableLlm } from "../adk/llm.ts";
export { TapePlugin, type TapePluginOptions, type ToolPolicies } from "../adk/plugin.ts";
export { type ListedValues, TapeSessionService } from "../adk/sessions.ts";
export { type Approval, toolApproval } from "../agent/approval.ts";
export type { ModelOptions } from "../agent/model-call.ts";
export type { Price, Prices } from "../agent/price.ts";
export type { ToolPolicy } from "../agent/tool-policy.ts";
