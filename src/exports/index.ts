export { type Clock, systemClock } from "../base/clock.ts";
export type { Duration } from "../base/duration.ts";
export { jsonLog, type Log, type LogLevel, type LogOption, silentLog } from "../base/log.ts";
export { type Random, systemRandom } from "../base/random.ts";
export type { Attributes, Span, SpanOptions, SpanPlace, Tracing } from "../base/trace.ts";
export type { TlsOptions } from "../client/exchange.ts";
export { openRemote } from "../client/open.ts";
export type { RemoteOptions, RemoteStore } from "../client/remote.ts";
export { type FunctionConnectorParts, functionConnector } from "../connector/function.ts";
export type { Address } from "../connector/http/addresses.ts";
export type { AnswerVerdict } from "../connector/http/answers.ts";
export type { Answer } from "../connector/http/exchange.ts";
export type { Resolve } from "../connector/http/reach.ts";
export type { HttpRequest } from "../connector/http/request.ts";
export { type HttpConnectorOptions, type HttpLook, httpConnector } from "../connector/http.ts";
export { EffectFailed } from "../engine/acts.ts";
export type { ForkRequest } from "../engine/fork.ts";
export type { ForkedOperation, ForkPlan, RepeatedAct, UndoneEffect } from "../engine/fork-plan.ts";
export type { PreemptTarget } from "../engine/preempt.ts";
export type { Bearer, Holder } from "../guard/bearer.ts";
export { FencedDoor, type FencedDoorOptions, type FencedRequest, fenceHeaders } from "../guard/door.ts";
export { fencedHandler } from "../guard/handler.ts";
export {
  createGuards,
  type GuardPostgresOptions,
  guardElsewhere,
  guardPostgres,
  type PostgresClient,
  postgresGuards,
} from "../guard/postgres.ts";
export { type RecordedActOptions, type RecordPlace, recordedAct } from "../guard/record.ts";
export { guardSqlite, guardSqliteElsewhere, type SqliteDatabase } from "../guard/sqlite.ts";
export { type GuardTable, guardTable, memoryGuards } from "../guard/table.ts";
export type { AppWorker, AppWorkerOptions } from "../host/app-worker.ts";
export type { EffectListFilter, EffectView } from "../host/effects.ts";
export type { OpenGate } from "../host/gates.ts";
export type { LeaseExplained, LeaseOptions, Leases } from "../host/leases.ts";
export { type OpenStoreOptions, openStore } from "../host/open-store.ts";
export { type ScheduleChange, type ScheduleOptions, Schedules, type ScheduleView } from "../host/schedules.ts";
export { type ServeOptions, type Serving, serve } from "../host/serve.ts";
export type { OperatorAct, Singleton, SingletonOptions, SingletonState, SingletonView } from "../host/singleton.ts";
export type { SingletonBody, SingletonContext, SingletonWork } from "../host/singleton-term.ts";
export { type ConnectOptions, type RunHandle, type StartOptions, Tape, type TapeOptions } from "../host/tape.ts";
export { type OpenTelemetryApi, type OpenTelemetrySpan, openTelemetry } from "../host/telemetry.ts";
export { type Belief, type Moment, momentOf } from "../lease/belief.ts";
export { type Identity, identify } from "../lease/identity.ts";
export { type AcquireOptions, type KeeperOptions, LeaseKeeper, type StandbyOptions } from "../lease/keeper.ts";
export { Lease, type Transition } from "../lease/lease.ts";
export type { Timings } from "../lease/timings.ts";
export type { Approvers } from "../model/approvers.ts";
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
  Acquired,
  AcquireRequest,
  Claimant,
  Expectation,
  LeaseView,
  Renewal,
  Renewed,
  Target,
  Term,
  TermView,
  Verdict,
} from "../model/lease.ts";
export { defaultLimits, type Limits } from "../model/limits.ts";
export type { JournalRecord, NewRecord, RecordData, RecordKind, TermEnd, TermReason } from "../model/records.ts";
export type { EffectRow } from "../model/rows.ts";
export type { ReactorAnswer, ReactorContext, ReactorHandler } from "../reactor/custom.ts";
export type { Resolution, Resolving } from "../reactor/resolve.ts";
export type { Connector, ConnectorContext } from "../sdk/connector.ts";
export type {
  Attempted,
  BudgetContext,
  Child,
  DecisionContext,
  DecisionNotes,
  GateAnswer,
  GateOptions,
  SpawnOptions,
  TapeContext,
  ValuesContext,
} from "../sdk/context.ts";
export {
  type Act,
  type ConnectorEffectOptions,
  type Effect,
  type EffectContext,
  type EffectDefinition,
  type EffectOptions,
  effect,
  type InverseDefinition,
  type RetryPolicy,
  type Semantics,
} from "../sdk/effect.ts";
export { type GateDefinition, type GateDefinitionOptions, gate } from "../sdk/gate.ts";
export { AckLost, Definite, NotSent, type Observation, outcome } from "../sdk/outcomes.ts";
export type { Checked, Schema } from "../sdk/schema.ts";
export {
  type AnyWorkflow,
  createRunner,
  type Runner,
  type Workflow,
  type WorkflowOptions,
  workflow,
} from "../sdk/workflow.ts";
export type {
  ApiToken,
  Appended,
  AuditEntry,
  Claim,
  Created,
  Entry,
  FeedPage,
  FeedRecord,
  Fenced,
  FindRequest,
  Health,
  Intake,
  ManualAct,
  NewToken,
  Read,
  RepeatKey,
  RunFilter,
  RunSpec,
  RunView,
  Settings,
  Store,
  Value,
  ValueCondition,
  Wake,
} from "../store/contract.ts";
export { type FollowOptions, followFeed } from "../store/follow.ts";
export { updateValue, type ValueTransition, type WatchOptions, watchValue } from "../store/values.ts";
