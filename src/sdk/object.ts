import { TapeError } from "../model/errors.ts";
import type {
  HandlerInput,
  HandlerWorkflow,
  ObjectDefinition,
  ObjectHandlers,
  ObjectSelf,
  TapeContext,
} from "./context.ts";
import { stateKey } from "./object-definition.ts";
import { queue } from "./queue.ts";
import { assertKnownKeys, assertName, shown } from "./validate.ts";
import { workflow } from "./workflow.ts";

/** The state of a new key, and the handlers that change it. */
export interface ObjectOptions<S, H extends ObjectHandlers<S>> {
  /** The state of a key that no handler has set yet. Its result is recorded. */
  readonly initial: () => S;
  /** Functions by name. Each gets the run's context, the object and its input. */
  readonly handlers: H;
}

/** Names that a client of an object has for itself; `then` would make it a promise. */
const reservedHandlers: ReadonlySet<string> = new Set(["start", "state", "then"]);
/** The name is part of the key of a value, which also holds the object's key. */
const maxNameLength = 128;

/**
 * State by key, with one writer at a time. Each call of a handler is a run. Runs of one key start in the order of their
 * calls, each after the one before it has ended.
 *
 * @example
 * const counter = object("counter", {
 *   initial: () => 0,
 *   handlers: { add: async (_tape, self, by: number) => { await self.set(self.state + by); return self.state; } },
 * });
 * const total = await app.object(counter, "visits").add(1);
 */
export function object<S, H extends ObjectHandlers<S>>(
  name: string,
  options: ObjectOptions<S, H>,
): ObjectDefinition<S, H> {
  assertName("an object", name);
  const subject = `object ${name}`;
  if (name.length > maxNameLength) throw bad(subject, "name", `its name has more than ${maxNameLength} characters`);
  assertKnownKeys(subject, options, ["initial", "handlers"]);
  const { initial, handlers } = options;
  if (typeof initial !== "function") throw bad(subject, "initial", `initial is a function, not ${shown(initial)}`);
  if (typeof handlers !== "object" || handlers === null || Object.keys(handlers).length === 0)
    throw bad(subject, "handlers", "handlers is an object with at least one function");
  // A handler that waits keeps its key: the next call must not act on a state that is about to change.
  const oneByOne = queue(subject, { counts: "started", perKey: { concurrency: 1 } });
  const workflows = new Map<string, HandlerWorkflow>();
  for (const [handler, run] of Object.entries(handlers)) {
    if (reservedHandlers.has(handler)) throw bad(subject, "handlers", `a handler cannot have the name ${handler}`);
    if (typeof run !== "function") throw bad(subject, "handlers", `${handler} is a function, not ${shown(run)}`);
    const body = async (tape: TapeContext, { key, input }: HandlerInput): Promise<unknown> =>
      run(tape, await loadState(tape, name, key, initial), input as never);
    const handles = workflow(`${name}.${handler}`, body, { queue: oneByOne, key: ({ key }) => key });
    workflows.set(handler, { ...handles, handlesCalls: true });
  }
  return { name, initial, handlers, queue: oneByOne, workflows };
}

/** Reads the state once, after the run has its slot: from then on no other handler of the key runs. */
async function loadState<S>(tape: TapeContext, name: string, key: string, initial: () => S): Promise<ObjectSelf<S>> {
  const valueKey = stateKey(name, key);
  const found = await tape.values.read(valueKey);
  let { version } = found;
  let state = found.value === undefined ? await tape.sample("initial", initial) : (found.value as S);
  return {
    key,
    get state() {
      return state;
    },
    async set(next) {
      const from = version++; // at once: a second set that does not wait for the first follows it
      await tape.values.put(valueKey, next, from);
      state = next;
    },
  };
}

function bad(subject: string, field: string, fault: string): TapeError {
  return new TapeError("TAPE_BAD_INPUT", `${subject}: ${fault}`, { field });
}
