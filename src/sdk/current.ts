import { AsyncLocalStorage } from "node:async_hooks";
import { TapeError } from "../model/errors.ts";
import type { TapeContext } from "./context.ts";

/** Where the code that is executing stands. */
export interface ExecutionSite {
  readonly context: TapeContext;
  /** The lane in which it stands; absent: the run's own. */
  readonly lane?: object;
  /** The body that is running, and whose it is: what it asks for could not be found again by a replay. */
  readonly body?: { readonly of: object; readonly kind: string; readonly name: string };
}

const storage = new AsyncLocalStorage<ExecutionSite>();
/** Where the code stands that executes right now, up to its return; what it leaves behind does not stand there. */
let direct: ExecutionSite | undefined;

export function withContext<T>(context: TapeContext, work: () => T): T {
  return runAt({ context }, work);
}

export function runAt<T>(standing: ExecutionSite, work: () => T): T {
  if (direct === undefined) return storage.run(standing, work);
  const outer = direct;
  direct = undefined;
  try {
    return storage.run(standing, work);
  } finally {
    direct = outer;
  }
}

/** The same for work that is over when it returns, without an async context of its own. */
export function runSyncAt<T>(standing: ExecutionSite, work: () => T): T {
  const outer = direct;
  direct = standing;
  try {
    return work();
  } finally {
    direct = outer;
  }
}

/** undefined: outside every run. */
export function currentSite(): ExecutionSite | undefined {
  return direct ?? storage.getStore();
}

/** The context of the run that is executing, for effects that are called without one. */
export function currentContext(): TapeContext {
  const context = currentSite()?.context;
  if (context === undefined) {
    throw new TapeError("TAPE_NO_RUN", "an effect was called outside a run: nothing would record it");
  }
  return context;
}
