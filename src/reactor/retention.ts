import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { TapeError } from "../model/errors.ts";
import { type RetentionCounts, type RetentionSettings, retentionPass } from "../retention/pass.ts";
import type { Store } from "../store/contract/store.ts";
import type { ReactorContext, ReactorResult } from "./custom.ts";

export interface RetentionDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly counts: RetentionCounts;
}

/**
 * Archives and deletes runs that are older than their policy. One replica at a time, under the lease `reactor retention`:
 * its fence is part of every write, so a replica that lost the lease deletes nothing.
 */
export function retentionHandler(
  deps: RetentionDeps,
  settings: RetentionSettings,
): (context: ReactorContext) => Promise<ReactorResult> {
  const { store, log } = deps;
  const ops = store.retention;
  if (ops === undefined) {
    const message = "the store is behind a server: run the reactor retention beside that server, with its store";
    throw new TapeError("TAPE_BAD_CONFIG", message, { reactor: "retention" });
  }
  return async ({ fence, abortSignal: signal, progress }) => {
    try {
      const pass = await retentionPass({ ...deps, ops, fence, signal, progress }, settings);
      if (pass.runs > 0) log("info", "retention.pass", { ...pass });
      return { done: pass.runs };
    } catch (error) {
      log("warn", "retention.failed", { ...errorFields(error) });
      throw error;
    }
  };
}
