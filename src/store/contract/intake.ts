import type { Claimant, ItemResult, Term } from "../../model/lease.ts";
import type { OnConflict } from "../../model/queue.ts";
import type { Credential, ForkData } from "../../model/records.ts";
import type { AdminWriteOps } from "./admin.ts";
import type { BuildWriteOps } from "./builds.ts";
import type { ErasureOps } from "./erasure.ts";
import type { EventWriteOps } from "./events.ts";
import type { StoredValue } from "./list.ts";
import type { QueueWriteOps } from "./queues.ts";
import type { RetentionWriteOps } from "./retention.ts";
import type { StreamTokenOps } from "./streams.ts";
import type { StartSignal, TalkWriteOps } from "./talk.ts";

/** Writes that need no lease; each is one conditional transaction. */
export interface IntakeOps
  extends AdminWriteOps,
    TalkWriteOps,
    StreamTokenOps,
    QueueWriteOps,
    BuildWriteOps,
    EventWriteOps,
    ErasureOps,
    RetentionWriteOps {
  /** Creates runs, each with its own result. */
  createRuns(
    tenant: string,
    specs: readonly RunSpec[],
    first?: Claimant & { nonce: bigint },
  ): Promise<ItemResult<CreateResult>[]>;
  /**
   * Sends a signal to the run's inbox. A repeated key is no error: the result has `duplicate: true`. `asks`: the sender
   * waits for the reply to note `n`, see `read.reply`. `mustMatch`: TAPE_GATE_STALE unless an open gate of this name has
   * exactly these `binds` and no such answer yet. With a `reason` every credential's signal is audited.
   */
  signal(
    tenant: string,
    run: string,
    signal: {
      name: string;
      value: unknown;
      key?: string;
      binds?: string;
      by?: string;
      reason?: string;
      via?: Credential;
      asks?: true;
      mustMatch?: true;
    },
  ): Promise<{ readonly n: number; readonly duplicate: boolean }>;
  /** Requests that the run stops. A repeated key sends no second note and returns the number of the first. */
  cancel(
    tenant: string,
    run: string,
    request: { reason: string; by?: string; key?: string; via?: Credential },
  ): Promise<{ readonly n: number }>;
  /** A late response to a fenced-out owner. Needs token and nonce of the attempt; settles nothing. */
  leaveEvidence(
    tenant: string,
    attempt: { run: number; pos: number; sub?: number; token: bigint; nonce: bigint },
    evidence: { happened: boolean; value?: unknown; error?: unknown },
  ): Promise<{ readonly journal: number; readonly n: number }>;
  /** SET → FIRED and the note, in one transaction. True for the one caller that fired it. Never early. */
  fireTimer(tenant: string, timer: { run: number; pos: number; purpose: string }): Promise<boolean>;
  /**
   * Advances the schedule from `version` and starts the runs of this firing, in one transaction. False: another process
   * did. `spec` also rewrites the schedule, only if it still equals `from`: versions of a schedule that was deleted and
   * recreated restart at 1.
   */
  fireSchedule(
    tenant: string,
    id: string,
    version: number,
    nextAt: number | null,
    runs: readonly RunSpec[],
    spec?: { readonly from: string; readonly to: string },
  ): Promise<boolean>;
  /** Writes a value if it has the expected version. */
  putValue(tenant: string, key: string, value: unknown, when: ValueCondition): Promise<StoredValue>;
  /** Deletes a value if it has the expected version. */
  deleteValue(tenant: string, key: string, version: number): Promise<StoredValue>;
}

/** A run to create. */
export interface RunSpec {
  /** The id of the run. */
  readonly id: string;
  readonly workflow: string;
  /** The version that the workflow states. */
  readonly version?: string;
  /** The input. */
  readonly input: unknown;
  readonly labels?: Readonly<Record<string, string>>;
  /** Caps in whole millionths of the unit. */
  readonly budget?: Readonly<Record<string, number>>;
  /** The schedule that started it. */
  readonly schedule?: string;
  /** Who started it: `token:ID` or `name:NAME`. A server fills it in. */
  readonly starters?: string[];
  /** The run that it is a fork of. */
  readonly forkedFrom?: string;
  /** What a fork keeps. */
  readonly fork?: ForkData;
  /** The input has passed the workflow's schema; the driver need not validate it again. */
  readonly checked?: true;
  /**
   * Sent in the transaction that creates or finds the run. A run that exists is then found by id and workflow alone; its
   * input may differ. TAPE_RUN_ENDED if it has ended and a signal is new.
   */
  readonly signals?: readonly StartSignal[];
  /** A holder that makes no progress for longer than this loses the run. */
  readonly maxStallMs?: number;
  /** The run is cancelled this long after its first term began, unless it has ended. */
  readonly deadlineMs?: number;
  /** The queue in which it waits for a slot; absent: it starts at once. TAPE_QUEUE_UNKNOWN if it is not defined. */
  readonly queue?: string;
  /** Its partition in the queue; default: the empty key. */
  readonly key?: string;
  /** From 1, served first, to 9; default 5. */
  readonly priority?: number;
  /** The weight of its key, in thousandths. */
  readonly weight?: number;
  /** It starts, or joins its queue, this much later or at this time. */
  readonly delayMs?: number;
  /** When it starts, in milliseconds since 1970. */
  readonly startAt?: number;
  /** It is cancelled if it still waits in its queue this long after it has joined it. */
  readonly expiresMs?: number;
  readonly unique?: UniqueKey;
  readonly debounce?: Debounce;
  /** The build that it is pinned to with its first term. Only if the creator holds that; otherwise it stays free. */
  readonly build?: string;
}

/** At most one live run of the workflow has this key. */
export interface UniqueKey {
  /** At most one live run of the workflow has it. */
  readonly key: string;
  /**
   * If there is one: return it, refuse with TAPE_RUN_LIVE, or cancel it and wait in the queue until it has ended. The
   * last needs a queue that counts started runs, one per key, and the same key in it.
   */
  readonly onConflict: OnConflict;
}

/** Starts with this key are one run until no further start has come for `waitMs`; it gets the last input. */
export interface Debounce {
  /** Starts with the same key become one run. */
  readonly key: string;
  /** How long no further start may come. */
  readonly waitMs: number;
  /** It starts at the latest this long after the first. */
  readonly maxWaitMs?: number;
}

/** The journal of a created or existing run. */
export interface CreateResult {
  readonly journal: number;
  /** false: the same run existed already. */
  readonly fresh: boolean;
  /** The id of the run that took the start, if it is another one: see `unique` and `debounce`. */
  readonly run?: string;
  /** The first term, if it was requested and the run is fresh. */
  readonly term?: Term;
}

/** The precondition of a write to a value. */
export type ValueCondition = "must_create" | "unconditional" | { readonly version: number };
