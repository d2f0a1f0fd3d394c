import type { TapeError } from "../model/errors.ts";
import type { RunView } from "../store/contract/store.ts";
import type { StartOptions } from "./options.ts";

/** A handle to one run. */
export interface RunHandle<O> {
  readonly id: string;
  /** Waits for the outcome; throws TAPE_RUN_FAILED for a run that did not complete. */
  result(options?: { readonly signal?: AbortSignal }): Promise<O>;
  status(): Promise<RunView["status"]>;
  /** The latest value that the run has published under this name. Needs no worker, also after the end. */
  published<T = unknown>(name: string): Promise<T | undefined>;
  /** The latest value, then each new one; fast changes may be skipped. Ends with the run. */
  watch<T = unknown>(name: string, options?: { readonly signal?: AbortSignal }): AsyncGenerator<T>;
}

/** A run of `app.startAll`: its input, and options of its own. */
export type StartItem<I> = StartOptions & { readonly input: I };
/** The handle of a started run, or the error that refused it. */
export type StartResult<O> =
  | { readonly ok: true; readonly run: RunHandle<O> }
  | { readonly ok: false; readonly error: TapeError };
