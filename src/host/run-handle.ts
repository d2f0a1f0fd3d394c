import type { RunView } from "../store/contract/store.ts";

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
