/**
 * A small explicit-state model checker.
 *
 * A model is a finite graph, defined by its initial state and its atomic steps. The checker searches it breadth first,
 * so a counterexample is a shortest one, and checks every invariant in every state. A pause needs no step of its own:
 * the search covers every interleaving, so each actor is paused everywhere, for any length of time.
 *
 * Liveness means: if no further fault happens, the goal can still be reached. It is checked in every reachable state, as
 * EF goal over the calm (fault-free) steps. It finds states without a path to the goal, but no schedules that never take
 * the path.
 */

export interface Step<S> {
  /** The actor: a worker, the clock, the operator, the store. */
  readonly by: string;
  /** A fixed phrase without state, so that `Verdict.fired` shows which steps happened at all. */
  readonly does: string;
  readonly to: S;
  /** A fault, or another step that the model rations to stay finite. Liveness does not rely on it. */
  readonly fault: boolean;
}

export interface Model<S> {
  readonly initial: S;
  steps(state: S): readonly Step<S>[];
  /** Equal for equivalent states; symmetric actors may be sorted here. */
  key(state: S): string;
  /** One line of text for traces. */
  show(state: S): string;
  readonly invariants: Readonly<Record<string, (state: S) => boolean>>;
  readonly goal: { readonly name: string; reached(state: S): boolean };
}

export interface Verdict {
  /** The name of the broken invariant or of the unreachable goal; null: the model is verified. */
  readonly violated: string | null;
  /** The steps of a shortest path to the violation, and the same path with the state after each step. */
  readonly path: readonly string[];
  readonly trace: string;
  readonly states: number;
  readonly steps: number;
  /** The length of the longest shortest path from the initial state. */
  readonly depth: number;
  /** The steps that happened. A test compares them with the expected ones, so that a vacuous model fails. */
  readonly fired: ReadonlySet<string>;
}

/** A protocol with a bug, and the invariant or goal that it must break. */
export interface Variant<R> {
  readonly name: string;
  readonly rules: R;
  readonly breaks: string;
  /** The last steps of the shortest trace. */
  readonly ends: readonly string[];
}

/** A truncated search proves nothing, so it is an error and not a verdict. */
export class TooManyStates extends Error {
  constructor(limit: number) {
    super(
      `the model has more than ${limit} states; make it smaller or split it, because a truncated search proves nothing`,
    );
  }
}

/** Five times the largest model here, a few seconds. A larger model does not fit the suite. */
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

/** The same model with only one invariant, to show that a broken variant breaks exactly that one. */
export function only<S>(model: Model<S>, invariant: string): Model<S> {
  const check = model.invariants[invariant];
  if (check === undefined) throw new Error(`the model has no invariant "${invariant}"`);
  return { ...model, invariants: { [invariant]: check } };
}

/** The rest of a ration after paying `cost` (undefined: the step is calm), or null if it is exhausted. */
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

  /** The nearest state from which calm steps cannot reach the goal, or null. A backward search from the goal. */
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
    const taken = path.slice(1).map((at) => this.reason[at]!);
    const trace = path.map(line).join("\n");
    return { violated, path: taken, trace, states, steps, depth: this.depth.at(-1)!, fired };
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
