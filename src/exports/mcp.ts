export { type Approval, type ApprovalRequest, toolApproval } from "../agent/approval.ts";
export type { ToolOutcome } from "../agent/tool-call.ts";
export type { ToolArgs, ToolPolicy } from "../agent/tool-policy.ts";
export type { McpClient, McpConnection, McpResult } from "../mcp-tools/connection.ts";
export { type ElicitAnswer, type ElicitRequest, toolInput } from "../mcp-tools/elicitation.ts";
export {
  McpCallFailed,
  type McpPolicies,
  type McpTools,
  type McpToolsOptions,
  mcpTools,
} from "../mcp-tools/mcp-tools.ts";
