export { rebuildConversation } from "../agent/rebuild-conversation.ts";
export type {
  ConversationSums,
  FailedAttempt,
  RunConversation,
  ToolEffect,
  Turn,
  TurnCall,
  TurnChild,
  TurnGate,
  TurnUsage,
} from "../agent/turn.ts";
export type { Alarm, Alarms } from "../alarm/alarms.ts";
export { type CloudTasksOptions, cloudTasksAlarms } from "../alarm/cloud-tasks.ts";
export {
  type NatsAlarmsOptions,
  type NatsConsumer,
  type NatsPublisher,
  natsAlarmConsumer,
  natsAlarmStream,
  natsAlarms,
  type RunningSweeps,
  runSweeps,
} from "../alarm/nats.ts";
export { type Clock, systemClock } from "../base/clock.ts";
export { ErasedPayload, isErased, isSealed, SealedPayload } from "../base/codec.ts";
export type { Duration } from "../base/duration.ts";
export { jsonLog, type Log, type LogLevel, type LogOption, silentLog } from "../base/log.ts";
export { type Random, systemRandom } from "../base/random.ts";
export type { Span, SpanAttributes, SpanContext, SpanOptions, Tracer } from "../base/trace.ts";
export type { TlsOptions } from "../client/http-transport.ts";
export { openRemote } from "../client/open.ts";
export type { RemoteOptions, RemoteStore } from "../client/remote.ts";
export { type FunctionConnectorParts, functionConnector } from "../connector/function.ts";
export type { HostAddress } from "../connector/http/addresses.ts";
export type { ResolveHost } from "../connector/http/connect.ts";
export { type HttpConnectorOptions, type HttpObserve, httpConnector } from "../connector/http/connector.ts";
export type { HttpResponse } from "../connector/http/exchange.ts";
export type { HttpRequest } from "../connector/http/request.ts";
export type { ResponseVerdict } from "../connector/http/verdict.ts";
export { EffectFailed } from "../engine/effects/inline.ts";
export type { EventData, EventRecord, Payload, TapeEvent } from "../events/event.ts";
export type { Fanout, FanoutState, FanoutView } from "../events/fanout.ts";
export type { EventFilter } from "../events/filter.ts";
export type { FanoutOptions } from "../events/options.ts";
export type { Delivery, SendContext, Sink } from "../events/sink.ts";
export { type CloudEventMode, type CloudEventsOptions, cloudEventsSink } from "../events/sinks/cloudevents.ts";
export { type EventHandler, type FunctionSinkOptions, functionSink } from "../events/sinks/function.ts";
export type { HttpSinkOptions } from "../events/sinks/http.ts";
export { type LogSinkOptions, logSink } from "../events/sinks/log.ts";
export { type PubsubSinkOptions, pubsubSink } from "../events/sinks/pubsub.ts";
export { type WebhookOptions, webhookSink } from "../events/sinks/webhook.ts";
export { fileObjects } from "../guard/file-objects.ts";
export { type GuardTable, guardTable, memoryGuardTable } from "../guard/guard-table.ts";
export { fencedHandler } from "../guard/http-handler.ts";
export { type ConditionalObjects, guardObject, type StoredObject } from "../guard/objects.ts";
export {
  createGuardTable,
  type GuardPostgresOptions,
  guardExternalPostgres,
  guardPostgres,
  type PostgresClient,
  postgresGuardTable,
} from "../guard/postgres.ts";
export { type RecordedCallOptions, type RecordStore, recordedCall } from "../guard/recorded-call.ts";
export { type FencedRequest, fenceHeaders, RequestFence, type RequestFenceOptions } from "../guard/request-fence.ts";
export { guardExternalSqlite, guardSqlite, type SqliteDatabase } from "../guard/sqlite.ts";
export type { LeaseHolder, TokenHolder } from "../guard/token-holder.ts";
export { type BuildMove, Builds, type ListedBuild } from "../host/builds.ts";
export { conversationOf } from "../host/conversation.ts";
export type { EffectListFilter, EffectView } from "../host/effects.ts";
export type { Fanouts } from "../host/fanouts.ts";
export { type FollowRunOptions, followRun, type RunEvent, type RunFollower } from "../host/follow-run.ts";
export type { OpenGate } from "../host/gates.ts";
export type { LeaseExplanation, LeaseOptions, Leases } from "../host/leases.ts";
export type { MetricsHandler } from "../host/metrics-handler.ts";
export type { ObjectCallOptions, ObjectClient } from "../host/objects.ts";
export { type OpenStoreOptions, openStore } from "../host/open-store.ts";
export type { CallOptions, SignalOptions, SignalToStart, StartOptions } from "../host/options.ts";
export type { MetricsOptions, ProcessMetrics } from "../host/process-metrics.ts";
export { type QueueAction, type QueueSettings, Queues } from "../host/queues.ts";
export type { ReactorOptions, ReactorsByName } from "../host/reactor-options.ts";
export type { RetentionOptions } from "../host/retention.ts";
export { type EventFanout, runEventFanout } from "../host/run-event-fanout.ts";
export type { RunHandle, StartItem, StartResult } from "../host/run-handle.ts";
export { type Reactors, type RunReactorsOptions, runReactors } from "../host/run-reactors.ts";
export {
  type ScheduleChange,
  type ScheduleOptions,
  Schedules,
  type ScheduleUpsert,
  type ScheduleView,
} from "../host/schedules.ts";
export { type RunningServer, type ServeOptions, serve } from "../host/serve.ts";
export type { ServerlessOptions, SweepCounts, SweepOptions } from "../host/serverless.ts";
export type { Reshard, ReshardRequest } from "../host/singleton/reshard.ts";
export { shardOf } from "../host/singleton/shard-of.ts";
export type { ShardedOptions, ShardedSingleton } from "../host/singleton/sharded-singleton.ts";
export type {
  Singleton,
  SingletonOptions,
  SingletonState,
  SingletonView,
} from "../host/singleton/singleton.ts";
export type { Shard, SingletonBody, SingletonContext, SingletonWork } from "../host/singleton/term.ts";
export type { Sinks, SinkView } from "../host/sinks.ts";
export type { ReadStreamOptions, StreamChunk, Streams } from "../host/streams.ts";
export type { AskOptions } from "../host/talk.ts";
export {
  type ConnectOptions,
  Tape,
  type TapeOptions,
} from "../host/tape.ts";
export { type OpenTelemetryApi, type OpenTelemetrySpan, openTelemetry } from "../host/telemetry.ts";
export {
  type MetricsExport,
  type ObservableInstrument,
  type OpenTelemetryMetricsApi,
  openTelemetryMetrics,
} from "../host/telemetry-metrics.ts";
export type { Worker, WorkerOptions } from "../host/worker.ts";
export { type Belief, type ClockReading, readClocks } from "../lease/belief.ts";
export { type Identity, identify } from "../lease/identity.ts";
export { type AcquireOptions, type KeeperOptions, LeaseKeeper, type StandbyOptions } from "../lease/keeper.ts";
export { Lease, type LeaseTransition } from "../lease/lease.ts";
export type { Timings } from "../lease/timings.ts";
export type { Approvers } from "../model/approvers.ts";
export type { BuildClaim, BuildRow } from "../model/build.ts";
export type { DeadLetter, LetterState, NewDeadLetter } from "../model/dead-letter.ts";
export {
  type ErrorCode,
  type ErrorDetails,
  type ErrorEntry,
  errorTable,
  isTapeError,
  TapeError,
} from "../model/errors.ts";
export { type Fence, fenceFromWire, fenceToWire } from "../model/fence.ts";
export type {
  AcquireCondition,
  AcquireRequest,
  AcquireResult,
  Claimant,
  ItemResult,
  LeaseTarget,
  LeaseView,
  RenewRequest,
  RenewResult,
  Term,
  TermView,
} from "../model/lease.ts";
export { defaultLimits, type Limits } from "../model/limits.ts";
export type {
  CountMode,
  OnConflict,
  QueueChange,
  QueueLimits,
  QueueReason,
  QueueSpec,
  RateLimit,
  SlotState,
} from "../model/queue.ts";
export type { CycleStep } from "../model/queue-cycle.ts";
export type { JournalRecord, NewRecord, RecordData, RecordKind, TermEnd, TermReason } from "../model/records.ts";
export type { EffectRow } from "../model/rows.ts";
export type { RunError } from "../model/run-error.ts";
export type { SinkPause } from "../model/sink-checkpoint.ts";
export type { MovePage, MoveRequest, MoveResult } from "../operator/builds.ts";
export type { ConversationPage, ConversationRequest } from "../operator/conversation.ts";
export type { EraseRequest, ErasureResult } from "../operator/erase.ts";
export type { ForkRequest } from "../operator/fork.ts";
export type { CompensatedEffect, ForkedOperation, ForkPlan, RepeatedEffect } from "../operator/fork-plan.ts";
export type { PreemptTarget } from "../operator/preempt.ts";
export type { RedriveRequest } from "../operator/redrive.ts";
export type { Resolution, ResolveRequest } from "../operator/resolve.ts";
export type { ReactorContext, ReactorHandler, ReactorResult } from "../reactor/custom.ts";
export type { ReactorCounts } from "../reactor/reactor.ts";
export type { ReactorStats } from "../reactor/runner.ts";
export type { Archive } from "../retention/archive.ts";
export type { Connector, ConnectorContext } from "../sdk/connector.ts";
export type {
  BudgetContext,
  Child,
  DecisionContext,
  DecisionDetails,
  DetachedOptions,
  DetachedRun,
  EffectResult,
  GateAnswer,
  GateOptions,
  HandlerInput,
  HandlerWorkflow,
  MapOptions,
  MapOutcome,
  ObjectCalls,
  ObjectDefinition,
  ObjectHandlers,
  ObjectInRun,
  ObjectSelf,
  SpawnOptions,
  StepContext,
  StepOptions,
  StepRetryPolicy,
  TapeContext,
  ValuesContext,
} from "../sdk/context.ts";
export { current } from "../sdk/current.ts";
export {
  type CompensateDefinition,
  type ConnectorEffectOptions,
  type Effect,
  type EffectCall,
  type EffectContext,
  type EffectDefinition,
  type EffectOptions,
  type EffectRetryPolicy,
  effect,
  type RetryPolicy,
  type Semantics,
} from "../sdk/effect.ts";
export { type GateDefinition, type GateDefinitionOptions, gate, type ReplyGate } from "../sdk/gate.ts";
export { type ObjectOptions, object } from "../sdk/object.ts";
export type { AnyObject } from "../sdk/object-definition.ts";
export { AckLost, DefiniteFailure, NotSent, type Observation, outcome } from "../sdk/outcomes.ts";
export { type KeyOptions, type QueueDefinition, type QueueOptions, queue, type RateOptions } from "../sdk/queue.ts";
export type { QueueChoice } from "../sdk/queue-choice.ts";
export type { Schema, SchemaResult } from "../sdk/schema.ts";
export type { ScopeHandle, ScopeOptions } from "../sdk/scope.ts";
export type { StartTiming } from "../sdk/start-options.ts";
export { type StreamOptions, stream } from "../sdk/stream.ts";
export type { OpenStream, StreamDefinition, StreamWriter } from "../sdk/stream-types.ts";
export type { Callback, CallbackOptions, GateRequest, RawCallback } from "../sdk/talk.ts";
export type {
  ClientOf,
  OwnTransaction,
  PostgresConnection,
  PostgresPool,
  SqliteConnection,
} from "../sdk/transaction.ts";
export {
  type AnyWorkflow,
  createRunner,
  type Runner,
  type Workflow,
  type WorkflowOptions,
  workflow,
} from "../sdk/workflow.ts";
export { type AesGcmOptions, aesGcm, type KeySource } from "../seal/aes-gcm.ts";
export { type CodecHandlerOptions, type CodecRequest, codecHandler } from "../seal/codec-handler.ts";
export {
  type EncodedPayload,
  keyUnknown,
  type PayloadCodec,
  type PayloadContext,
  payloadRefused,
  type RedactPayload,
} from "../seal/payload-codec.ts";
export type {
  ApiToken,
  AppendRequest,
  AppendResult,
  AuditEntry,
  AuditInfo,
  BuildReadOps,
  BuildView,
  BuildWriteOps,
  CallbackBody,
  Census,
  CensusOps,
  CheckpointOps,
  Chunk,
  ChunkAppend,
  ChunkPage,
  ChunkRequest,
  ClaimOps,
  CreateResult,
  Debounce,
  EventReadOps,
  EventWriteOps,
  FeedPage,
  FeedRecord,
  FencedOps,
  FindRequest,
  IdempotencyKey,
  InDoubtCount,
  IntakeOps,
  LabelFilter,
  LeaseFilter,
  NewChunk,
  NewToken,
  OperatorReason,
  PartitionView,
  PauseView,
  PinnedRun,
  PublishedValue,
  QueueDefined,
  QueuePosition,
  QueueReadOps,
  QueueRoom,
  QueueView,
  QueueWriteOps,
  ReactorBacklog,
  ReadOps,
  Reply,
  RunFilter,
  RunSpec,
  RunView,
  SinkRow,
  SlotFilter,
  SlotView,
  StartSignal,
  StepTransaction,
  Store,
  StoredValue,
  StoreHealth,
  StoreSettings,
  StreamAccess,
  StreamAppend,
  StreamPart,
  StreamReadOps,
  StreamToken,
  StreamTokenOps,
  StreamView,
  StreamWriteOps,
  Subject,
  SubjectRun,
  TalkReadOps,
  TalkWriteOps,
  TransactionOps,
  UniqueKey,
  ValueCondition,
  WakeHint,
} from "../store/contract/store.ts";
export { type FollowOptions, followFeed } from "../store/follow-feed.ts";
export { updateValue, type ValueTransition, type WatchOptions, watchValue } from "../store/values.ts";
