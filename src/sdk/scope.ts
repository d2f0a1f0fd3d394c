import type { Duration } from "../base/duration.ts";

/** Options of a scope. */
export interface ScopeOptions {
  /**
   * After this time the scope ends, as by `tape.timeout`. A shielded scope has 30 s without it. Default: none, or 30 s
   * if it is shielded.
   */
  readonly timeout?: Duration;
  /**
   * For cleanup: its operations run although the run is cancelled or an enclosing scope has ended. The run waits for
   * it, for at most ten minutes after its cancellation. Default false.
   */
  readonly shielded?: boolean;
}

/** An open scope. */
export interface ScopeHandle {
  /** Ends the scope: what is pending inside is refused with TAPE_CANCELLED, and nothing starts inside any more. */
  cancel(reason?: string): void;
  /** Aborts when the scope ends or the run is cancelled. */
  readonly abortSignal: AbortSignal;
}
