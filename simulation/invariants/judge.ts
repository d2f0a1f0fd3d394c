import type { Evidence } from "../evidence.ts";
import type { RewindLoss } from "../rewinder.ts";

/** The result of an invariant in one simulation. */
export interface Judgement {
  /** How many objects the invariant applied to. An invariant that never applies has proved nothing. */
  readonly judged: number;
  /** Messages about the objects for which it does not hold. */
  readonly faults: readonly string[];
}

/** A rule that must hold at the end of every simulation. */
export type Invariant = (evidence: Evidence) => Judgement;

/** Returned for an object to which the invariant does not apply, or which is excused. */
export const exempt = undefined;

/** Judges each object alone. `check` returns what is wrong with it: `[]` for nothing, or `exempt`. */
export function each<T>(
  objects: Iterable<T>,
  check: (object: T, index: number) => readonly string[] | typeof exempt,
): Judgement {
  const faults: string[] = [];
  let [judged, index] = [0, 0];
  for (const object of objects) {
    const found = check(object, index++);
    if (found === exempt) continue;
    judged++;
    faults.push(...found);
  }
  return { judged, faults };
}

/** Adds judgements up. */
export const combine = (judgements: readonly Judgement[]): Judgement => ({
  judged: judgements.reduce((sum, { judged }) => sum + judged, 0),
  faults: judgements.flatMap(({ faults }) => faults),
});

/** For invariants about the parts of each object. */
export const across = <T>(objects: Iterable<T>, judge: (object: T) => Judgement): Judgement =>
  combine([...objects].map((object) => judge(object)));

/** The invariant does not apply to this simulation. */
export const notApplicable: Judgement = { judged: 0, faults: [] };

/**
 * Liveness is judged only in worlds that were healed. This excuse covers a whole world: where it is cut off, no process
 * is left to do what is still open.
 */
export const settles = ({ plan }: Evidence): boolean => plan.heals;

/** A call requested at `from` and answered at `to` may be among the records that the store lost. */
export const mayBeForgotten = (lost: RewindLoss | undefined, from: number, to: number): boolean =>
  lost !== undefined && from <= lost.to && to >= lost.from;
