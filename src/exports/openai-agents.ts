export { type Approval, toolApproval } from "../agent/approval.ts";
export type { Price, Prices } from "../agent/price.ts";
export type { DurableToolsOptions, ToolPolicy } from "../agent/tool-policy.ts";
export { type DurableModelOptions, durableModel, durableProvider } from "../openai-agents/model.ts";
export { TapeSession } from "../openai-agents/session.ts";
export {
  durableTools,
  type ToolKit,
  type ToolPolicies,
  tool,
} from "../openai-agents/tools.ts";
