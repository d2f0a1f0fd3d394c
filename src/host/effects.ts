import { decode } from "../base/codec.ts";
import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import { effectMachine, obligationMachine } from "../model/machines.ts";
import type { EffectRow } from "../model/rows.ts";
import { assertKnownKeys, assertOneOf, durationOrThrow } from "../sdk/validate.ts";
import type { Store } from "../store/contract/store.ts";
import { effectCursor } from "../store/list-cursors.ts";
import { runIds } from "./run-ids.ts";

/** An effect or an obligation, with what is needed to act on it: its run's id, and values as the code knows them. */
export interface EffectView extends Omit<EffectRow, "run" | "args" | "outcome" | "policy"> {
  /** The run's id; with `pos` and `sub` it is what `app.resolve` takes. */
  readonly run: string;
  /** The number of the run's journal. */
  readonly journal: number;
  /** What it was called with; of an obligation `{ args, result }` of what it undoes. */
  readonly args: unknown;
  /** What came of it: a value or an error; undefined: nothing yet. */
  readonly outcome: unknown;
  /** `after` of the list that continues behind it. */
  readonly cursor: string;
}

/** Which effects or obligations to list. */
export interface EffectListFilter {
  readonly run?: string;
  readonly status?: string;
  /** In this status for at least so long. */
  readonly minAge?: Duration;
  /** Behind the one with this cursor; not for a list of one run's. */
  readonly after?: string;
  /** At most so many; a page may be shorter, because it has a bound in bytes: the list ends with an empty one. */
  readonly limit?: number;
}

export async function listEffects(
  store: Store,
  tenant: string,
  role: "effect" | "compensation",
  filter: EffectListFilter,
): Promise<EffectView[]> {
  const whose = role === "effect" ? "effects.list" : "obligations.list";
  assertKnownKeys(whose, filter, ["run", "status", "minAge", "after", "limit"]);
  const { run, status, minAge, after, limit } = filter;
  const states: readonly string[] = role === "effect" ? effectMachine.states : obligationMachine.states;
  if (status !== undefined) assertOneOf(whose, "status", status, states);
  const rows = await store.read.effects(tenant, {
    role,
    ...defined({ run, after, limit }),
    ...(status === undefined ? {} : { status: [status] }),
    ...(minAge === undefined ? {} : { minAgeMs: durationOrThrow(whose, "minAge", minAge) }),
  });
  const ids = await runIds(store, tenant, rows);
  return rows.map(({ run: journal, args, outcome, policy: _policy, ...row }) => ({
    ...row,
    run: ids.get(journal)!,
    journal,
    cursor: effectCursor({ ...row, run: journal }),
    args: decode(args),
    outcome: outcome === null ? undefined : decode(outcome),
  }));
}
