import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { SpanContext, Tracer } from "../../base/trace.ts";
import type { Lease } from "../../lease/lease.ts";
import type { TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { EffectRef } from "../../model/rows.ts";
import type { TapeContext } from "../../sdk/context.ts";
import type { Runner } from "../../sdk/workflow.ts";
import type { RunSpec, Store } from "../../store/contract/store.ts";
import type { JournalWriter } from "../journal/journal-writer.ts";
import type { PendingWaits } from "../journal/pending-waits.ts";
import type { Reservations } from "../journal/reservations.ts";
import type { Spans } from "../journal/spans.ts";
import type { History } from "../replay/history.ts";
import type { Replay } from "../replay/replay.ts";
import type { ImmediateSteps } from "./immediate.ts";

export interface DriveOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly lease: Lease;
  readonly tenant: string;
  readonly runId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Given by the run's creator: its journal has nothing but the creation, and need not be read. */
  readonly fresh?: RunSpec;
  /** Who wants to see where time goes, and where the run's starter was. */
  readonly tracing?: Tracer;
  readonly startedAt?: SpanContext;
  /** Taken so long before its timer: it stays with us until that has fired. */
  readonly earlyMs?: number;
  /** What the worker knows of the bodies of its workflows. */
  readonly immediate: ImmediateSteps;
  /** How long replay waits for the code to ask for what the journal holds next. */
  readonly patienceMs?: number;
  /** Its last holder vanished: it may have killed the process. */
  readonly suspicion?: Suspicion;
}

/** How a drive came to its end: the run is over, waits for something, needs a person, or belongs to somebody else now. */
export type DriveEnd = "ended" | "parked" | "stuck" | "lost";

/** How a run ended, as its record says. */
export interface RunResult {
  readonly status: "COMPLETED" | "FAILED" | "CANCELLED" | "COMPENSATED";
  readonly outcome: unknown;
}

/** What a drive whose last holder vanished has to ask and to tell. */
export interface Suspicion {
  /** true: the run has killed too many processes, and is stuck now. */
  check(drive: DriveHandle): Promise<boolean>;
  /** It has moved on. */
  clear(): void;
  /** It waits for its turn, or is tested with nothing beside it: no company for others that are. */
  solo: boolean;
}

/** A drive, as its parts see it: what they share, and what they tell it. */
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
  /** undefined: nobody traces. */
  readonly spans: Spans | undefined;
  readonly context: TapeContext & {
    /** Operations whose bodies may be running, by name. */
    readonly bodies: ReadonlyMap<object, string>;
    failureBehind(error: unknown): Pick<RecordData<"run.retried">, "pos" | "from" | "to" | "lanes">;
  };
  /** The journal of the root run, whose budget this one draws on. */
  readonly root: number;
  /** Child runs that this run has started. */
  readonly children: Set<string>;
  /** Bodies that are running now: the drive does not park while one is. */
  activeBodies: number;
  /** The cancellation has been read: nothing new begins. */
  cancelRequested: boolean;
  /** The code has been told of it. */
  readonly cancelled: boolean;
  /** The function has its outcome: what its branches still ask for is not heard. */
  readonly bodyEnded: boolean;
  readonly finished: boolean;
  /** The code is at a point where notes can reach it. */
  readonly acceptsNotes: boolean;
  finish(end: DriveEnd): void;
  /** Something went wrong that is not the workflow's: a lost term ends the drive, a broken rule needs a person. */
  fail(error: unknown): void;
  /** A person is needed, and for which effects; `look` says how to go on where a note was faster. */
  markStuck(error: TapeError, on?: readonly EffectRef[], look?: () => Promise<void>): Promise<void>;
  /** At this point of the journal the code is told that it is cancelled. */
  cancel(): void;
  /** Something happened: see whether the drive can rest. */
  parkIfIdle(): void;
  /** An effect whose outcome must be written even if the function does not wait for it. */
  track(act: Promise<void>): void;
  matchWaits(): void;
  termEnded(
    waitingFor: readonly string[],
    next?: { readonly nextReactor?: string; readonly delayMs?: number },
  ): NewRecord;
  /** Parks. Notes that wait are taken first, though nothing waits for them; `look` then says how to go on. */
  parkWith(make: () => NewRecord[], look: () => Promise<void>, end?: DriveEnd): Promise<void>;
  takeLateNotes(): Promise<void>;
  /** What is asked for after the function has ended: refused once the run has, unheard if it is driven again. */
  tooLate(what: string): Promise<never>;
}
