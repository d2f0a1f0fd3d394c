/**
 * A small explicit-state model checker.
 *
 * A model is a finite graph given by its initial state and its atomic steps. The checker walks it breadth first, so a
 * counterexample is a shortest one, and tests every invariant on every state. A pause needs no step of its own: every
 * interleaving is walked, so each actor is paused everywhere for as long as it hurts.
 *
 * Liveness is the question "if no further fault happens, can the goal still be reached?", asked of every reachable
 * state: EF goal over the calm (fault-free) steps. It finds states from which there is no way out; it says nothing about
 * schedules that never choose the way out.
 */

export interface Step<S> {
  /** Who acts: a worker, the clock, the operator, the store. */
  readonly by: string;
  /** A fixed phrase without state in it, so that `Verdict.fired` shows which steps of the model ever happened. */
  readonly does: string;
  readonly to: S;
  /** Faults, and whatever else a model rations to stay finite: liveness may not rely on these steps. */
  readonly fault: boolean;
}

export interface Model<S> {
  readonly initial: S;
  steps(state: S): readonly Step<S>[];
  /** Equal for states that cannot be told apart; symmetric actors may be sorted here. */
  key(state: S): string;
  /** One line for people, printed in traces. */
  show(state: S): string;
  readonly invariants: Readonly<Record<string, (state: S) => boolean>>;
  readonly goal: { readonly name: string; reached(state: S): boolean };
}

export interface Verdict {
  /** The name of the broken invariant or of the unreachable goal; null when the model verifies. */
  readonly violated: string | null;
  /** The steps of a shortest path to the violation, and the same path with the state after each step. */
  readonly path: readonly string[];
  readonly trace: string;
  readonly states: number;
  readonly steps: number;
  /** Length of the longest shortest path: how far from the start the walk went. */
  readonly depth: number;
  /** What happened at least once; a test compares it with what must happen, so that a vacuous model is red. */
  readonly fired: ReadonlySet<string>;
}

/** A protocol with something wrong in it, and the invariant or goal that it must break. */
export interface Variant<R> {
  readonly name: string;
  readonly rules: R;
  readonly breaks: string;
  /** The last steps of the shortest trace. */
  readonly ends: readonly string[];
}

/** A walk that was cut short proves nothing, so it is an error and not a verdict. */
export class TooManyStates extends Error {
  constructor(limit: number) {
    super(`the model has more than ${limit} states; make it smaller or split it, a truncated walk proves nothing`);
  }
}

/** Five times the largest model here, a few seconds: a model that outgrows it does not fit the suite. */
const LIMIT = 200_000;

export function explore<S>(model: Model<S>, limit: number = LIMIT): Verdict {
  const walk = new Walk(model, limit);
  let at = 0;
  // `walk.size` grows while the loop runs: the list of states is the queue of the breadth-first search.
  for (; at < walk.size && walk.broken === null; at++) walk.expand(at);
  if (walk.broken !== null) return walk.verdict(walk.broken.invariant, walk.broken.state);
  const stranded = walk.stranded();
  return stranded === null ? walk.verdict(null, 0) : walk.verdict(model.goal.name, stranded);
}

/** The same model with one invariant only, to show that a broken variant really breaks that one. */
export function only<S>(model: Model<S>, invariant: string): Model<S> {
  const check = model.invariants[invariant];
  if (check === undefined) throw new Error(`the model has no invariant "${invariant}"`);
  return { ...model, invariants: { [invariant]: check } };
}

/** What is left of a ration after paying `cost` (nothing: the step is calm), or null when it is used up. */
export function spend<R extends Readonly<Record<keyof R, number>>>(left: R, cost: keyof R | undefined): R | null {
  if (cost === undefined) return left;
  return left[cost] === 0 ? null : { ...left, [cost]: left[cost] - 1 };
}

class Walk<S> {
  broken: { readonly invariant: string; readonly state: number } | null = null;
  private readonly model: Model<S>;
  private readonly limit: number;
  private readonly index = new Map<string, number>();
  private readonly states: S[] = [];
  private readonly parent: number[] = [];
  private readonly reason: string[] = [];
  private readonly depth: number[] = [];
  private readonly calmFrom: number[][] = [];
  private readonly fired = new Set<string>();
  private readonly invariants: readonly (readonly [string, (state: S) => boolean])[];
  private steps = 0;

  constructor(model: Model<S>, limit: number) {
    this.model = model;
    this.limit = limit;
    this.invariants = Object.entries(model.invariants);
    this.visit(model.initial, -1, "");
  }

  get size(): number {
    return this.states.length;
  }

  expand(at: number): void {
    for (const step of this.model.steps(this.states[at]!)) {
      this.steps++;
      this.fired.add(step.does);
      const to = this.visit(step.to, at, `${step.by} ${step.does}`);
      if (!step.fault) this.calmFrom[to]!.push(at);
    }
  }

  /** The state nearest to the start from which calm steps cannot reach the goal, or null: a backward search from it. */
  stranded(): number | null {
    const saved = new Uint8Array(this.size);
    const queue: number[] = [];
    const save = (state: number): void => {
      if (saved[state] === 1) return;
      saved[state] = 1;
      queue.push(state);
    };
    this.states.forEach((state, at) => {
      if (this.model.goal.reached(state)) save(at);
    });
    for (let at = 0; at < queue.length; at++) this.calmFrom[queue[at]!]!.forEach(save);
    const lost = saved.indexOf(0);
    return lost === -1 ? null : lost;
  }

  verdict(violated: string | null, state: number): Verdict {
    const { size: states, steps, fired } = this;
    const path: number[] = [];
    for (let at = violated === null ? -1 : state; at >= 0; at = this.parent[at]!) path.unshift(at);
    const line = (at: number, n: number): string =>
      `${String(n).padStart(2)}. ${(this.reason[at] || "start").padEnd(44)} ${this.model.show(this.states[at]!)}`;
    const told = path.slice(1).map((at) => this.reason[at]!);
    const trace = path.map(line).join("\n");
    return { violated, path: told, trace, states, steps, depth: this.depth.at(-1)!, fired };
  }

  private visit(state: S, parent: number, reason: string): number {
    const key = this.model.key(state);
    const known = this.index.get(key);
    if (known !== undefined) return known;
    const at = this.size;
    if (at >= this.limit) throw new TooManyStates(this.limit);
    this.index.set(key, at);
    this.states.push(state);
    this.parent.push(parent);
    this.reason.push(reason);
    this.depth.push(parent < 0 ? 0 : this.depth[parent]! + 1);
    this.calmFrom.push([]);
    if (this.broken === null) {
      const failed = this.invariants.find(([, holds]) => !holds(state));
      if (failed !== undefined) this.broken = { invariant: failed[0], state: at };
    }
    return at;
  }
}
