import { TapeError } from "./errors.ts";

/** One named transition, from any of these states to `to`. */
export interface Transition<State extends string> {
  readonly from: readonly State[];
  readonly to: State;
}

/** A state machine as a table. A transition that is not in the table is refused; there are no other rules. */
export interface Machine<State extends string, Event extends string> {
  readonly name: string;
  readonly initial: readonly State[];
  readonly states: readonly State[];
  readonly final: readonly State[];
  readonly events: Readonly<Record<Event, Transition<State>>>;
  /** The state after `event`; undefined: the event is not allowed in this state. */
  next(state: State, event: Event): State | undefined;
  /** All states with a transition to `to`. */
  sourcesOf(to: State): readonly State[];
  /** Throws TAPE_ILLEGAL_TRANSITION unless there is a transition from `from` to `to`. */
  assert(from: State, to: State): void;
}

export function machine<const State extends string, const Event extends string>(spec: {
  readonly name: string;
  readonly states: readonly State[];
  readonly initial: readonly NoInfer<State>[];
  readonly final: readonly NoInfer<State>[];
  readonly events: Readonly<Record<Event, Transition<NoInfer<State>>>>;
}): Machine<State, Event> {
  const transitions = Object.values<Transition<State>>(spec.events);
  const sourceStates = (to: State) => [...new Set(transitions.filter((t) => t.to === to).flatMap((t) => t.from))];
  const sources = new Map(spec.states.map((to) => [to, sourceStates(to)]));
  return {
    ...spec,
    next(state, event) {
      const transition = spec.events[event];
      return transition.from.includes(state) ? transition.to : undefined;
    },
    sourcesOf(to) {
      return sources.get(to) ?? [];
    },
    assert(from, to) {
      if (transitions.some((t) => t.to === to && t.from.includes(from))) return;
      throw new TapeError("TAPE_ILLEGAL_TRANSITION", `${spec.name}: no transition from ${from} to ${to}`, { from, to });
    },
  };
}
