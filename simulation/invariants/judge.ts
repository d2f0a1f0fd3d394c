import type { Evidence } from "../evidence.ts";
import type { Lost } from "../rewinder.ts";

/** What a rule came to in one simulation. */
export interface Judgement {
  /** To how many objects the rule applied. A rule that never applies has proved nothing. */
  readonly judged: number;
  /** Where it does not hold, in words. */
  readonly faults: readonly string[];
}

/** A rule that must hold at the end of every simulation. */
export type Invariant = (evidence: Evidence) => Judgement;

/** A check answers this about an object to which its rule does not apply, or which is excused. */
export const exempt = undefined;

/** Judges each object by itself: the answer is what is wrong with it, `[]` for nothing, or `exempt`. */
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

/** Several judgements as one. */
export const together = (judgements: readonly Judgement[]): Judgement => ({
  judged: judgements.reduce((sum, { judged }) => sum + judged, 0),
  faults: judgements.flatMap(({ faults }) => faults),
});

/** For a rule about the parts of each object. */
export const across = <T>(objects: Iterable<T>, judge: (object: T) => Judgement): Judgement =>
  together([...objects].map((object) => judge(object)));

/** The rule has nothing to say about this world. */
export const nothing: Judgement = { judged: 0, faults: [] };

/**
 * What must become of things in the end is asked only of worlds that were healed. This excuse is right for a whole world:
 * where one is cut off in the middle, nobody is left who could do what is still to be done.
 */
export const comesToRest = ({ plan }: Evidence): boolean => plan.heals;

/** What was asked for at `from` and answered at `to` may have been in the store that went back, and be forgotten. */
export const mayBeForgotten = (lost: Lost | undefined, from: number, to: number): boolean =>
  lost !== undefined && from <= lost.to && to >= lost.from;
