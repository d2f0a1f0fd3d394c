import type { Fence } from "../../model/fence.ts";
import type { KeptReason, RetentionPolicy, RetentionState } from "../../model/retention.ts";
import type { AuditInfo } from "./admin.ts";
import type { Page } from "./list.ts";

/**
 * What the reactor `retention` needs, called as `store.retention.x`. Writes carry the fence of its named lease. Payloads
 * pass as they are stored: sealed ones stay sealed. Absent behind a server, which runs the reactor itself.
 */
export interface RetentionOps {
  /** The name and epoch of the tenant's store, which are part of every archive's name, and its time. */
  identity(tenant?: string): Promise<{ readonly store: string; readonly epoch: number; readonly now: number }>;
  /** Ended roots, the oldest first, after a place and before a time; `next`: where the next page begins. */
  ended(tenant: string, after: EndedPlace, until: number, limit?: number): Promise<EndedPage>;
  /** Dates the next ended trees by a policy. */
  date(fence: Fence, policy: RetentionPolicy, after: EndedPlace, until: number, limit?: number): Promise<EndedPage>;
  /** Trees that are due at `until`, the oldest first, each with what must be archived. */
  due(tenant: string, until: number, limit: number): Promise<DueTree[]>;
  /** Due trees that stay for now are checked again after this time. */
  postpone(fence: Fence, roots: readonly number[], delayMs: number): Promise<void>;
  /** Records of these journals as they are stored, by journal and number, up to `through`. */
  records(tenant: string, journals: readonly number[], page: RawPlace): Promise<Page<RawRecord>>;
  chunks(tenant: string, runs: readonly number[], after: PartPlace | undefined): Promise<Page<RawChunk>>;
  blobs(tenant: string, runs: readonly number[], after: PartPlace | undefined): Promise<Page<RawBlob>>;
  /**
   * Deletes trees that an archive has, all of them or none: TAPE_VERSION_CONFLICT if one has changed since it was read or
   * may no longer be deleted. Tombstones and `run.pruned` records name the file. Replaces the lease's checkpoint.
   */
  prune(fence: Fence, trees: readonly DueTree[], file: ArchivedFile, checkpoint: string): Promise<number>;
}

/** Writes of operators about retention, called as `store.intake.x`. */
export interface RetentionWriteOps {
  /** Wakes the reactor `retention`, wherever it runs. Recorded in the audit log. */
  requestRetention(tenant: string, audit: AuditInfo): Promise<void>;
}

/** Reads about retention, called as `store.read.x`. */
export interface RetentionReadOps {
  /** What is due, or becomes due within a time, by workflow; and what the reactor did last. */
  retention(tenant: string, withinMs?: number): Promise<RetentionView>;
  /** Pruned runs that an archive has, by id after `above`. */
  archived(tenant: string, page?: { id?: string; above?: string; limit?: number }): Promise<Page<ArchivedRun>>;
}

/** Where retention stands. Trees are counted up to 10 000. */
export interface RetentionView {
  /** Trees that are due now or within the time. */
  readonly due: number;
  /** How long the first has been due. */
  readonly lagMs: number;
  readonly workflows: readonly DueWorkflow[];
  /** Absent: no reactor `retention` has worked for this tenant. */
  readonly state?: RetentionState;
}

export interface DueWorkflow {
  readonly workflow: string;
  readonly trees: number;
  /** When the oldest of them ended, and was due. */
  readonly endedAt: number;
  readonly dueAt: number;
}

/** A pruned run and the archive's file that has it. */
export interface ArchivedRun {
  readonly id: string;
  readonly archive: string;
  readonly prunedAt: number;
  readonly createdAt: number | null;
  readonly endedAt: number | null;
}

/** A place among ended runs: after this end and journal. */
export interface EndedPlace {
  readonly at: number;
  readonly journal: number;
}

export interface EndedPage {
  readonly roots: readonly EndedRoot[];
  /** Absent: no ended run is left before the time. */
  readonly next?: EndedPlace;
}

export interface EndedRoot {
  readonly journal: number;
  readonly workflow: string;
  readonly endedAt: number;
  /** How long the workflow's code keeps the run, recorded at its end. */
  readonly retainMs: number | null;
}

/** A root with all runs below it. */
export interface DueTree {
  readonly root: number;
  readonly dueAt: number;
  readonly kept?: KeptReason;
  readonly runs: readonly TreeRun[];
  /** Every journal with its last number; inboxes are negative. */
  readonly journals: readonly TreeJournal[];
}

export interface TreeJournal {
  readonly run: number;
  readonly journal: number;
  readonly seq: number;
}

export interface TreeRun {
  readonly journal: number;
  readonly id: string;
  readonly workflow: string;
  readonly version: string | null;
  readonly status: string;
  readonly inputHash: string;
  /** Text of a JSON object. */
  readonly labels: string | null;
  readonly parent: number | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly token: string;
  /** An operator has erased its payloads, or is about to: no archive gets them. */
  readonly erased?: true;
}

/** Where a page of records begins, and its last number in each journal. */
export interface RawPlace {
  readonly after?: { readonly journal: number; readonly seq: number };
  readonly through?: number;
}

export interface RawRecord {
  readonly journal: number;
  readonly seq: number;
  readonly token: string;
  readonly at: number;
  readonly kind: string;
  /** JSON text as stored. */
  readonly body: string;
}

export interface PartPlace {
  readonly run: number;
  readonly name: string;
  readonly n: number;
}

export interface RawChunk {
  readonly run: number;
  readonly stream: string;
  readonly offset: number;
  readonly part: number;
  readonly token: string;
  readonly at: number;
  readonly body: string | null;
}

export interface RawBlob {
  readonly run: number;
  readonly blob: string;
  readonly n: number;
  readonly chunks: number;
  readonly bytes: number;
  readonly body: string;
}

export interface ArchivedFile {
  readonly archive: string;
  readonly sha256: string;
}
