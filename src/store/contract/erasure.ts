import type { AuditInfo } from "./admin.ts";

/** Erasing the payloads of ended runs, called as `store.intake.x`. */
export interface ErasureOps {
  /**
   * Erases the next part of the payloads of a run that has ended. Call it with `next` of the result until there is none.
   * Each call is a short transaction and may be repeated; a run that is erased already is left as it is. The call
   * without a cursor decides: TAPE_RUN_LIVE or TAPE_RUN_UNSETTLED changes nothing. It is recorded in the audit log.
   */
  eraseRun(tenant: string, run: string, request: EraseStepRequest): Promise<EraseStep>;
}

export interface EraseStepRequest extends AuditInfo {
  /** All runs of its tree. Their records hold copies of each other's payloads, so a part of a tree is refused. */
  readonly tree?: boolean;
  /** `next` of the previous result. */
  readonly after?: string;
}

export interface EraseStep {
  /** The runs of the tree; only in the result of the first call. */
  readonly runs?: number;
  /** Records that this call has changed. */
  readonly records: number;
  /** Absent: nothing is left to erase. */
  readonly next?: string;
  /** Everything had been erased before. */
  readonly already?: true;
  /** Other runs with copies of its input or results: the run that started it, and those from which it was forked. */
  readonly copies?: readonly string[];
}
