import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { SpanContext, Tracer } from "../../base/trace.ts";
import type { Lease } from "../../lease/lease.ts";
import type { TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { EffectRef } from "../../model/rows.ts";
import type { TapeContext } from "../../sdk/context.ts";
import type { OpenStream } from "../../sdk/stream-types.ts";
import type { Runner } from "../../sdk/workflow.ts";
import type { RunSpec, Store } from "../../store/contract/store.ts";
import type { ChunkFlusher } from "../journal/chunk-flusher.ts";
import type { JournalWriter } from "../journal/journal-writer.ts";
import type { PendingWaits } from "../journal/pending-waits.ts";
import type { Reservations } from "../journal/reservations.ts";
import type { RunStreams } from "../journal/run-streams.ts";
import type { Spans } from "../journal/spans.ts";
import type { History } from "../replay/history.ts";
import type { Replay } from "../replay/replay.ts";
import type { ImmediateSteps } from "./immediate.ts";

/** A call of a model that this process has made; one that is replayed is none. */
export interface ModelFigures {
  readonly model: string;
  readonly outcome: "ok" | "failed";
  /** As the decision has recorded it. */
  readonly usage?: Readonly<Record<string, number>>;
}

export interface DriveOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly lease: Lease;
  readonly tenant: string;
  readonly runId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Set if this process created the run: its journal has only the creation and need not be read. */
  readonly fresh?: RunSpec;
  /** The body of its first record, if the journal has held no other before this term. */
  readonly created?: string;
  /** Traces the drive; `startedAt` is the span of the run's starter. */
  readonly tracing?: Tracer;
  readonly startedAt?: SpanContext;
  /** Called after each call of a model. */
  readonly onModelCall?: (call: ModelFigures) => void;
  /** Called when the code is live, with the seconds since the run's journal began to be read. */
  readonly onReplayed?: (seconds: number) => void;
  /** The run was claimed this long before its timer; the drive does not park until the timer has fired. */
  readonly preloadMs?: number;
  /** Which bodies of the workflows are synchronous, as far as this process has seen. */
  readonly immediate: ImmediateSteps;
  /** The address under which other systems reach the server, for callbacks. */
  readonly publicUrl?: string;
  /** How long replay waits for the code to request what the journal holds next. */
  readonly patienceMs?: number;
  /** Stores the chunks of all runs of the process. */
  readonly flusher: ChunkFlusher;
  /** Set if the previous holder crashed: this run may be the cause. */
  readonly suspicion?: Suspicion;
}

/** The input of the next generation. */
export type Continuation = Pick<RecordData<"run.continued">, "input" | "inputHash" | "checked">;

/** How a drive ended: the run has ended, is parked, needs an operator, or belongs to another process. */
export type DriveEnd = "ended" | "parked" | "stuck" | "lost";

/** How a run ended, according to its record. */
export interface RunResult {
  readonly status: "COMPLETED" | "FAILED" | "CANCELLED" | "COMPENSATED";
  readonly outcome: unknown;
}

/** The test of a run whose previous holder crashed. */
export interface Suspicion {
  /** true: the run has crashed too many processes and is STUCK now. */
  check(drive: DriveHandle): Promise<boolean>;
  /** The run has made progress. */
  clear(): void;
  /** The run is queued or driven alone, so it does not disturb the test of another. */
  solo: boolean;
}

/** A drive, as its parts see it: what they share and how they notify it. */
export interface DriveHandle {
  readonly options: DriveOptions;
  /** Aborts when the run is cancelled or the drive is over. */
  readonly abortSignal: AbortSignal;
  settled: RunResult | undefined;
  readonly history: History;
  readonly journal: JournalWriter;
  readonly replay: Replay;
  readonly waits: PendingWaits;
  readonly reservations: Reservations;
  /** undefined: no tracer is set. */
  readonly spans: Spans | undefined;
  /** What bodies stream; undefined: none has yet. */
  readonly streams: RunStreams | undefined;
  /** Opens a stream for the attempt at this position. */
  openStream(pos: number): OpenStream;
  readonly context: TapeContext & {
    /** Operations without a result, by name. */
    readonly open: readonly string[];
    /** Operations whose bodies may be running, by name. */
    readonly bodies: ReadonlyMap<object, string>;
    /** The first position of the next generation. */
    readonly lanes: { readonly firstAfter: number };
    /** Replies to requests that the code has received and not answered. */
    readonly generation: { openReplies(pos: number): readonly NewRecord[] };
    failureBehind(error: unknown): Pick<RecordData<"run.retried">, "pos" | "from" | "to" | "lanes">;
  };
  /** The journal of the root run, whose budget this run draws on. */
  readonly root: number;
  /** Child runs that this run has started. */
  readonly children: Set<string>;
  /** Bodies that are running. The drive does not park while there is one. */
  activeBodies: number;
  /** The cancellation has been read: no new operation starts. */
  cancelRequested: boolean;
  /** The cancellation has been delivered to the code. */
  readonly cancelled: boolean;
  /** The function has its outcome: later requests of its branches are ignored. */
  readonly bodyEnded: boolean;
  readonly finished: boolean;
  /** The code is live, so that notes can reach it. */
  readonly acceptsNotes: boolean;
  /** `continued`: this process drives the next generation, in the same term. */
  finish(end: DriveEnd | "continued"): void;
  /** The function is over, and the next generation begins with this input. */
  continueAs(next: Continuation): void;
  /** Handles an error that is not the workflow's: a lost term ends the drive, a broken rule makes the run STUCK. */
  fail(error: unknown): void;
  /** Makes the run STUCK, on these effects if any. `retry` runs instead if notes arrived first. */
  markStuck(error: TapeError, on?: readonly EffectRef[], retry?: () => Promise<void>): Promise<void>;
  /** Delivers the cancellation to the code, at this point of the journal. */
  cancel(at?: number): void;
  /** Resolves when the attempts of effects that are in progress have their records. */
  whenEffectsSettle(): Promise<unknown>;
  /** Parks the drive if it has nothing left to do. */
  parkIfIdle(): void;
  /** Tracks an effect whose outcome must be written even if the function does not wait for it. */
  track(effect: Promise<void>): void;
  matchWaits(): void;
  termEnded(
    waitingFor: readonly string[],
    next?: { readonly nextReactor?: string; readonly delayMs?: number },
  ): NewRecord;
  /** Parks with these records. If notes are pending, takes them first and then calls `retry` instead. */
  parkWith(make: () => NewRecord[], retry: () => Promise<void>, end?: DriveEnd): Promise<void>;
  takeLateNotes(): Promise<void>;
  /** A request after the function has ended: rejected once the run has ended, unanswered if the run is driven again. */
  tooLate(what: string): Promise<never>;
}
