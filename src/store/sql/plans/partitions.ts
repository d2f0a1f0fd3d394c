import { type PartitionChanges, type Plan, query } from "../plan.ts";

/** How a transaction changes the counters of one key. */
interface Delta {
  readonly queue: number;
  readonly key: string;
  running: number;
  waiting: number;
  /** The lowest class that enters; undefined: none does. */
  enters: number | undefined;
  /** A run leaves that may have been the first. */
  leaves: boolean;
  weight: number | null;
}

/**
 * Changes of the keys' counters in one transaction. They are written at its end, in the order of the keys: every process
 * locks keys in this order, so that no two wait for each other.
 */
export class PartitionDeltas implements PartitionChanges {
  /** Created with the first change: most transactions change none. */
  #deltas: Map<string, Delta> | undefined;

  enter(queue: number, key: string, of: number, weight: number | null = null): void {
    const delta = this.#of(queue, key);
    delta.waiting++;
    delta.enters = Math.min(of, delta.enters ?? of);
    delta.weight = weight ?? delta.weight;
  }

  leave(queue: number, key: string): void {
    const delta = this.#of(queue, key);
    delta.waiting--;
    delta.leaves = true;
  }

  return(queue: number, key: string): void {
    this.#of(queue, key).running--;
  }

  get isEmpty(): boolean {
    return this.#deltas === undefined;
  }

  *flush(): Plan<void> {
    const deltas = [...(this.#deltas?.values() ?? [])];
    const sorted = deltas.sort((a, b) => a.queue - b.queue || (a.key < b.key ? -1 : 1));
    this.#deltas = undefined;
    for (const { queue, key, running, waiting, enters, leaves, weight } of sorted) {
      if (enters === undefined) yield* query("partition.return", { queue, key, running, waiting });
      else yield* query("partition.adjust", { queue, key, running, waiting, class: enters, weight });
      // In a statement of its own: under the lock it sees every run that has entered.
      if (leaves) yield* query("partition.reclass", { queue, key });
    }
  }

  #of(queue: number, key: string): Delta {
    const name = `${queue}/${key}`;
    this.#deltas ??= new Map();
    let delta = this.#deltas.get(name);
    if (delta === undefined) {
      delta = { queue, key, running: 0, waiting: 0, enters: undefined, leaves: false, weight: null };
      this.#deltas.set(name, delta);
    }
    return delta;
  }
}

/** Runs a plan, then writes the counters that it has changed. */
export function* withPartitions<T>(plan: Plan<T>, deltas: PartitionDeltas): Plan<T> {
  const result = yield* plan;
  if (!deltas.isEmpty) yield* deltas.flush();
  return result;
}
