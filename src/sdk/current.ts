import { AsyncLocalStorage } from "node:async_hooks";
import { TapeError } from "../model/errors.ts";
import type { TapeContext } from "./context.ts";

/** The run, lane and body in which code executes. */
export interface ExecutionSite {
  readonly context: TapeContext;
  /** The current lane; absent: the run's main lane. */
  readonly lane?: object;
  /** The innermost scope; absent: none. */
  readonly scope?: object;
  /** The call of `budget.spend` that the code is part of. */
  readonly spend?: object;
  /** The running body and its operation. Operations requested inside it are refused, because replay runs no bodies. */
  readonly body?: { readonly of: object; readonly kind: string; readonly name: string };
}

const storage = new AsyncLocalStorage<ExecutionSite>();
/** The context of the code that executes right now, until it returns; its continuations do not see it. */
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

/** The same for synchronous work, without an async context. */
export function runSyncAt<T>(standing: ExecutionSite, work: () => T): T {
  const outer = direct;
  direct = standing;
  try {
    return work();
  } finally {
    direct = outer;
  }
}

/** undefined outside a run. */
export function currentSite(): ExecutionSite | undefined {
  return direct ?? storage.getStore();
}

/**
 * The context of the run whose code executes here, for libraries that do not receive it. TAPE_NO_RUN outside a run.
 *
 * @example
 * const tape = current();
 * await tape.step("index", () => indexPages());
 */
export function current(): TapeContext {
  const context = currentSite()?.context;
  if (context !== undefined) return context;
  throw new TapeError("TAPE_NO_RUN", "current: no run executes here");
}

/** The context of the current run, for effects that are called directly. */
export function currentContext(): TapeContext {
  const context = currentSite()?.context;
  if (context === undefined) {
    throw new TapeError("TAPE_NO_RUN", "an effect was called outside a run, where nothing records it");
  }
  return context;
}
