import { isDeepStrictEqual } from "node:util";
import { checkLinearizable, type Operation, type SequentialModel } from "../../testkit/linearizable.ts";
import type { Evidence } from "../evidence.ts";
import { markOf, type RosterState, type RosterTrace, type RosterWork, roster, rosterFailure } from "../objects.ts";
import { recordsOf } from "./journal.ts";
import { combine, each, exempt, type Invariant, mayBeForgotten } from "./judge.ts";

/** A run of a handler: by a client, by another run or by another handler. */
export interface RosterRun {
  readonly id: string;
  readonly journal: number;
  readonly parent: number | null;
  readonly key: string;
  readonly work: RosterWork;
  readonly status: Evidence["runs"][number]["status"];
  readonly outcome: unknown;
  /** Wall times by the store. Infinity: it has not ended. */
  readonly from: number;
  readonly to: number;
}

export function rosterRuns(evidence: Evidence): RosterRun[] {
  const handlers = new Set([...roster.workflows.values()].map(({ name }) => name));
  return evidence.runs.flatMap((run) => {
    if (!handlers.has(run.workflow)) return [];
    const records = recordsOf(evidence, run.journal);
    const [created, last] = [records[0], records.at(-1)];
    if (created?.kind !== "run.created") return [];
    const { key, input: work } = created.data.input as { readonly key: string; readonly input: RosterWork };
    // The store's times are whole milliseconds.
    const to = last?.kind === "run.ended" ? last.at + 1 : Number.POSITIVE_INFINITY;
    const { id, journal, parent, status, outcome } = run;
    return [{ id, journal, parent, key, work, status, outcome, from: created.at, to }];
  });
}

/** The trace that a handler must have if nothing else changes the state while it runs. */
function expectedTrace(work: RosterWork, found: RosterState): RosterTrace {
  const trace = [found];
  let [state, sets] = [found, 0];
  for (const { do: what } of work.tasks) {
    if (what === "set") state = [...state, markOf(work, sets++)];
    if (what === "set" || what === "look") trace.push(state);
  }
  return trace;
}

/** A handler has the state for itself: it ends as its plan says, and sees no changes but its own. */
function faultsOf({ id, work, status, outcome }: RosterRun): readonly string[] | typeof exempt {
  const fails = work.tasks.some((task) => task.do === "fail");
  if (status === "COMPLETED") {
    const trace = outcome as RosterTrace;
    if (fails) return [`${id} completed, and its handler throws`];
    if (isDeepStrictEqual(trace, expectedTrace(work, trace[0]!))) return [];
    return [`${id} shared its key: it saw ${JSON.stringify(trace)}`];
  }
  if (status !== "FAILED") return exempt; // cancelled or still open
  const { message, code } = outcome as { readonly message?: string; readonly code?: string };
  return fails && message === rosterFailure ? [] : [`${id} failed with ${code ?? message}`];
}

type RosterInput = { readonly op: "read" } | { readonly op: "set"; readonly mark: string };
/** The state before the operation. Absent: the operation took place, and its caller does not know the state. */
interface RosterOutput {
  readonly state?: RosterState;
}

const model: SequentialModel<RosterState, RosterInput, RosterOutput> = {
  init: () => [],
  key: (state) => state.join(),
  effect: (input) => JSON.stringify(input),
  step(state, input, output) {
    const ok = output?.state === undefined || isDeepStrictEqual(output.state, state);
    return { ok, state: input.op === "read" ? state : [...state, input.mark] };
  },
};

type RosterOperation = Operation<RosterInput, RosterOutput>;

/** A handler reads once, then sets. Nothing comes in between, as every operation names the whole state before it. */
function operationsOf({ work, status, outcome, from, to }: RosterRun): RosterOperation[] {
  const marks = work.tasks.filter((task) => task.do === "set").map((_, k) => markOf(work, k));
  const known = status === "COMPLETED" ? (outcome as RosterTrace) : undefined;
  const [found] = known ?? [];
  const sets = marks.map((mark, k): RosterOperation => {
    const input = { op: "set", mark } as const;
    // A handler that was cancelled, or is still open, may or may not have come to this.
    if (status !== "COMPLETED" && status !== "FAILED") return { call: from, ret: Number.POSITIVE_INFINITY, input };
    return {
      call: from,
      ret: to,
      input,
      output: found === undefined ? {} : { state: [...found, ...marks.slice(0, k)] },
    };
  });
  if (found === undefined) return sets;
  return [{ call: from, ret: to, input: { op: "read" }, output: { state: found } }, ...sets];
}

/**
 * Handlers of one key take place one after the other. Some order of their changes and of all reads explains every
 * result, and each takes effect between the start and the end of its run.
 */
export const objectsAreLinearizable: Invariant = (evidence) => {
  const { objectAnswers, objectReads, lost, runs: allRuns } = evidence;
  const runs = rosterRuns(evidence);
  const reads = objectReads.filter(({ requestedAt, at }) => !mayBeForgotten(lost, requestedAt, at));
  return combine([
    each(runs, faultsOf),
    each(
      Map.groupBy(runs, ({ key }) => key),
      ([key, own]) => {
        const seen = reads.filter((read) => read.key === key);
        if (own.length + seen.length < 2) return exempt;
        const verdict = checkLinearizable(model, [
          ...own.flatMap(operationsOf),
          ...seen.map(
            ({ state, requestedAt, at }): RosterOperation => ({
              call: requestedAt,
              ret: at,
              input: { op: "read" },
              output: { state },
            }),
          ),
        ]);
        return verdict.ok ? [] : [`key ${key}: ${verdict.reason}`];
      },
    ),
    each(objectAnswers, ({ run, trace, requestedAt, at }) => {
      if (mayBeForgotten(lost, requestedAt, at)) return exempt;
      const outcome = allRuns.find(({ id }) => id === run)?.outcome;
      return isDeepStrictEqual(outcome, trace) ? [] : [`a client of ${run} got ${JSON.stringify(trace)}`];
    }),
  ]);
};
