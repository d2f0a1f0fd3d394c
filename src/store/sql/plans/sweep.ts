import { type Plan, query, queryRow } from "../plan.ts";

/** Admissions between two sweeps of a queue, and keys of one sweep. */
const everyAdmissions = 32;
const maxKeys = 200;
/** A key that has been empty for this long has lost its turn. */
const olderMs = 600_000;

/**
 * Deletes keys that have been empty for long, a few at a time, in the transaction of an admission. A key that is still
 * ahead in its turns or its rate stays: it would otherwise start from the front again.
 */
export class KeySweeper {
  readonly #queues = new Map<number, { admissions: number; above: string }>();

  *sweep({ id, vnow }: { readonly id: number; readonly vnow: number }): Plan<void> {
    const state = this.#queues.get(id) ?? { admissions: 0, above: "" };
    this.#queues.set(id, state);
    if (++state.admissions % everyAdmissions !== 0) return;
    const { above } = state;
    const until = (yield* queryRow("partition.sweep_range", { queue: id, above, limit: maxKeys }))?.until ?? null;
    if (until !== null) yield* query("partition.sweep", { queue: id, above, until, vnow, olderMs });
    state.above = until ?? ""; // from the first key again
  }
}
