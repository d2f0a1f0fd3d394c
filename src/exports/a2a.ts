export {
  type TapeExecutor,
  type TapeExecutorOptions,
  type TaskApp,
  tapeExecutor,
  tapeRequestHandler,
} from "../a2a/executor.ts";
export {
  type TaskInput,
  type TaskMessage,
  type TaskOutput,
  TaskRejected,
  taskMessage,
  type WireArtifact,
  type WireMessage,
  type WirePart,
} from "../a2a/messages.ts";
export { TapePushNotificationStore } from "../a2a/push-store.ts";
export type { TaskScopeOptions } from "../a2a/scope.ts";
export { TapeTaskStore } from "../a2a/task-store.ts";
export type { ValuesOf } from "../store/value-keys.ts";
