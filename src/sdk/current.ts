import { AsyncLocalStorage } from "node:async_hooks";
import { TapeError } from "../model/errors.ts";
import type { TapeContext } from "./context.ts";

/** The context of the run that is executing, for effects that are called without one. */
const storage = new AsyncLocalStorage<TapeContext>();

export function runWith<T>(context: TapeContext, body: () => T): T {
  return storage.run(context, body);
}

export function currentContext(): TapeContext {
  const context = storage.getStore();
  if (context === undefined) {
    throw new TapeError("TAPE_NO_RUN", "an effect was called outside a run: nothing would record it");
  }
  return context;
}
