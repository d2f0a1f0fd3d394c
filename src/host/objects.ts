import type { ObjectCalls, ObjectDefinition, ObjectHandlers } from "../sdk/context.ts";
import { assertObject, stateKey } from "../sdk/object-definition.ts";
import { assertKnownKeys, assertName } from "../sdk/validate.ts";
import type { Workflow } from "../sdk/workflow.ts";
import type { Store } from "../store/contract/store.ts";
import type { StartOptions } from "./options.ts";
import type { RunHandle } from "./run-handle.ts";

/** Options of the runs that a client of an object starts. */
export type ObjectCallOptions = Pick<StartOptions, "id" | "labels" | "budget" | "by" | "priority">;

/** One key of an object, for a program. */
export type ObjectClient<S, H extends ObjectHandlers<S>> = ObjectCalls<H> & {
  /** The same calls; each returns a handle as soon as its run exists, and does not wait for the result. */
  readonly start: ObjectCalls<H, "handle", RunHandle<unknown>>;
  /** The state that was last set. Needs no worker and waits for no handler. */
  state(): Promise<S>;
};

/** What a client needs of its app. */
interface ObjectApp {
  readonly store: Pick<Store, "read">;
  readonly tenant: string;
  start<I, O>(workflow: Workflow<I, O>, input: I, options?: StartOptions): Promise<RunHandle<O>>;
}

/** The client of one key: each call is a run in the queue of the object. */
export function objectClient<S, H extends ObjectHandlers<S>>(
  app: ObjectApp,
  definition: ObjectDefinition<S, H>,
  key: string,
  options: ObjectCallOptions = {},
): ObjectClient<S, H> {
  assertObject(definition);
  const { name, workflows, initial } = definition;
  assertName(`the key of object ${name}`, key);
  assertKnownKeys(`object ${name}`, options, ["id", "labels", "budget", "by", "priority"]);
  const starts = [...workflows].map(([handler, of]) => {
    const start = (input?: unknown): Promise<RunHandle<unknown>> => app.start(of, { key, input }, options);
    return [handler, start] as const;
  });
  const calls = starts.map(([handler, start]) => {
    const call = async (input?: unknown): Promise<unknown> => (await start(input)).result();
    return [handler, call] as const;
  });
  const state = async (): Promise<S> => {
    const found = await app.store.read.value(app.tenant, stateKey(name, key));
    return found === undefined || found.deleted ? initial() : (found.value as S);
  };
  return { ...Object.fromEntries(calls), start: Object.fromEntries(starts), state } as ObjectClient<S, H>;
}
