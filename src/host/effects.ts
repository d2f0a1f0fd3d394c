import { decode } from "../base/codec.ts";
import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import { effectMachine, obligationMachine } from "../model/machines.ts";
import type { EffectRow } from "../model/rows.ts";
import { assertKnownKeys, assertOneOf, durationOrThrow } from "../sdk/validate.ts";
import type { Store } from "../store/contract/store.ts";
import { effectCursor } from "../store/list-cursors.ts";
import { runIds } from "./run-ids.ts";

/** An effect or an obligation with its run's id and its decoded values, as an operator action needs them. */
export interface EffectView extends Omit<EffectRow, "run" | "args" | "outcome" | "policy"> {
  /** The run's id. `app.resolve` takes it with `pos` and `sub`. */
  readonly run: string;
  /** The number of the run's journal. */
  readonly journal: number;
  /** The arguments; of an obligation `{ args, result }` of the effect that it compensates. */
  readonly args: unknown;
  /** The result or the error; undefined: not settled yet. */
  readonly outcome: unknown;
  /** Pass it as `after` to continue the list behind this entry. */
  readonly cursor: string;
}

/** Which effects or obligations to list. */
export interface EffectListFilter {
  /** Only effects of this run. */
  readonly run?: string;
  /** Only effects in this status. */
  readonly status?: string;
  /** Minimum time in this status. */
  readonly minAge?: Duration;
  /** Continues behind the entry with this cursor; together with `run` only in a list that is newest first. */
  readonly after?: string;
  /** `desc`: newest first, the effects of the newest run, and of a run the latest. Without it oldest first. */
  readonly order?: "asc" | "desc";
  /** Maximum number of rows. A page is also bounded in bytes and may be shorter; the list ends with an empty page. */
  readonly limit?: number;
}

export async function listEffects(
  store: Store,
  tenant: string,
  role: "effect" | "compensation",
  filter: EffectListFilter,
): Promise<EffectView[]> {
  const subject = role === "effect" ? "effects.list" : "obligations.list";
  assertKnownKeys(subject, filter, ["run", "status", "minAge", "after", "order", "limit"]);
  const { run, status, minAge, after, order, limit } = filter;
  const states: readonly string[] = role === "effect" ? effectMachine.states : obligationMachine.states;
  if (status !== undefined) assertOneOf(subject, "status", status, states);
  const rows = await store.read.effects(tenant, {
    role,
    ...defined({ run, after, order, limit }),
    ...(status === undefined ? {} : { status: [status] }),
    ...(minAge === undefined ? {} : { minAgeMs: durationOrThrow(subject, "minAge", minAge) }),
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
