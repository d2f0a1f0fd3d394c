import type { ObjectDefinition, ObjectHandlers, ObjectInRun, TapeContext } from "../../sdk/context.ts";
import { assertObject, stateKey } from "../../sdk/object-definition.ts";

/** An object as a run sees it: each call is a child run, in the queue of the object. */
export function objectInRun<S, H extends ObjectHandlers<S>>(
  tape: Pick<TapeContext, "call" | "values" | "sample">,
  definition: ObjectDefinition<S, H>,
  key: string,
): ObjectInRun<S, H> {
  assertObject(definition);
  const { name, workflows, initial } = definition;
  const calls = [...workflows].map(([handler, of]) => {
    const call = (input?: unknown): Promise<unknown> => tape.call(of, { key, input });
    return [handler, call] as const;
  });
  const state = async (): Promise<S> => {
    const { value } = await tape.values.read(stateKey(name, key));
    return value === undefined ? tape.sample("initial", initial) : (value as S);
  };
  return { ...Object.fromEntries(calls), state } as ObjectInRun<S, H>;
}
