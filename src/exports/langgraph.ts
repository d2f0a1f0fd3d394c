export { type Approval, toolApproval } from "../agent/approval.ts";
export type { ModelOptions } from "../agent/model-call.ts";
export type { ToolPolicy } from "../agent/tool-policy.ts";
export { durableChat } from "../langgraph/chat.ts";
export {
  type DurableGraph,
  graphInterrupt,
  type InterruptedOptions,
  interrupted,
  type StoredState,
} from "../langgraph/interrupted.ts";
export { TapeSaver, type TapeSaverOptions } from "../langgraph/saver.ts";
export { TapeStore, type TapeStoreOptions } from "../langgraph/store.ts";
export { durableTools, type ToolKit, type ToolPolicies } from "../langgraph/tools.ts";
export type { ValuesOf } from "../store/value-keys.ts";
