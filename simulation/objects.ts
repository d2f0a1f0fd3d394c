import { isTapeError } from "../src/model/errors.ts";
import type { ObjectSelf, TapeContext } from "../src/sdk/context.ts";
import { object } from "../src/sdk/object.ts";

/** The marks of all changes so far, oldest first. */
export type RosterState = readonly string[];

/** What a handler does, one after the other. */
export type RosterTask =
  /** Adds a mark to the state. */
  | { readonly do: "set" }
  /** Reads the state from the store, where every reader finds it. */
  | { readonly do: "look" }
  | { readonly do: "step" }
  | { readonly do: "sleep"; readonly ms: number }
  /** Calls another key as a child run. */
  | { readonly do: "call"; readonly key: string; readonly work: RosterWork }
  /** Calls its own key, which is refused. */
  | { readonly do: "nest" }
  | { readonly do: "fail" };

export interface RosterWork {
  /** The marks that it sets begin with this. */
  readonly mark: string;
  readonly tasks: readonly RosterTask[];
}

/** The operation of a run that calls an object. */
export interface ObjectOp {
  readonly op: "object";
  readonly key: string;
  readonly work: RosterWork;
}

/** What a handler returns: the state as it found it, then as each `set` left it and each `look` found it. */
export type RosterTrace = readonly RosterState[];

/** The message of a failure that the plan wants. */
export const rosterFailure = "the handler fails";

export const markOf = ({ mark }: RosterWork, sets: number): string => `${mark}.${sets}`;

/** The object of all simulated calls. Its state shows in which order it came about. */
export const roster = object("roster", {
  initial: (): RosterState => [],
  handlers: { work: (tape, self, work: RosterWork): Promise<RosterTrace> => perform(tape, self, work) },
});

async function perform(tape: TapeContext, self: ObjectSelf<RosterState>, work: RosterWork): Promise<RosterTrace> {
  const trace = [self.state];
  let sets = 0;
  for (const task of work.tasks) {
    if (task.do === "set") {
      await self.set([...self.state, markOf(work, sets++)]);
      trace.push(self.state);
    }
    if (task.do === "look") trace.push(await tape.object(roster, self.key).state());
    if (task.do === "step") await tape.step("count", () => self.state.length);
    if (task.do === "sleep") await tape.sleep(task.ms);
    if (task.do === "call") await callRoster(tape, task.key, task.work);
    if (task.do === "nest") await callRoster(tape, self.key, { mark: `${work.mark} again`, tasks: [] });
    if (task.do === "fail") throw new Error(rosterFailure);
  }
  return trace;
}

/** The trace of the called handler, or the code of its failure. */
export async function callRoster(tape: TapeContext, key: string, work: RosterWork): Promise<RosterTrace | string> {
  try {
    return await tape.object(roster, key).work(work);
  } catch (error) {
    if (isTapeError(error, "TAPE_RUN_FAILED") || isTapeError(error, "TAPE_QUEUE_NESTED")) return error.code;
    throw error;
  }
}
