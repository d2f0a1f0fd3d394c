import { laneRoom } from "../../model/record-context.ts";
import type { RecordData } from "../../model/records.ts";
import type { Lane } from "./lanes.ts";

/** Kinds of operations that may be repeated at another position, because each leaves only its record. */
const repeatableKinds: ReadonlySet<string> = new Set([
  "step.done",
  "sample.taken",
  "decision.made",
  "race.won",
  "patch.marked",
  "scope.opened",
  "scope.closed",
  "state.published",
  "labels.set",
  "timer.set",
]);
/** Which failure is retried, and which positions are discarded with it. */
export type FailureBehind = Pick<RecordData<"run.retried">, "pos" | "from" | "to" | "lanes">;

/** A run ends by a recent failure; the code has handled earlier ones. */
const maxTrackedFailures = 16;

interface Failure {
  readonly error: unknown;
  readonly pos: number;
  /** The next position of each lane when the code received it. */
  readonly requestedCount: ReadonlyMap<Lane, number>;
}

/** The failures that the code has received, in case the run ends by one of them. */
export class Failures {
  readonly #failures: Failure[] = [];

  add(failure: Failure): void {
    this.#failures.push(failure);
    if (this.#failures.length > maxTrackedFailures) this.#failures.shift();
  }

  /**
   * The operation whose failure ended the workflow, if it was one. Operations since then (in a `finally`) are discarded
   * with it if repeating them does no harm. An effect, a child or a gate may not be repeated: then nothing is retried.
   */
  behind(error: unknown, lanes: readonly Lane[], nextIn: (lane: Lane) => number): FailureBehind {
    for (let link = error, depth = 0; link !== undefined && depth < 8; depth++) {
      const failure = this.#failures.findLast((failed) => failed.error === link);
      if (failure !== undefined) return from(failure, lanes, nextIn);
      link = link instanceof Error ? link.cause : undefined;
    }
    return {};
  }
}

function from({ pos, requestedCount }: Failure, all: readonly Lane[], nextIn: (lane: Lane) => number): FailureBehind {
  const spans: { readonly from: number; readonly to: number }[] = [];
  for (const lane of all) {
    const from = requestedCount.get(lane) ?? lane.number * laneRoom;
    const to = nextIn(lane);
    if (from === to) continue;
    const kinds = lane.kinds.slice(from % laneRoom, to % laneRoom);
    if (!kinds.every((kind) => kind === undefined || repeatableKinds.has(kind))) return {};
    spans.push({ from, to });
  }
  const [first, ...lanes] = spans;
  return { pos, ...first, ...(lanes.length > 0 && { lanes }) };
}
