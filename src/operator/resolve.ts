import type { ReactorDeps } from "../engine/item/deps.ts";
import { loadItem } from "../engine/item/load.ts";
import { operatorWord } from "../engine/item/operator-word.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { JournalRecord } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";
import type { AuditInfo } from "../store/contract/store.ts";
import { readAll } from "../store/read-all.ts";
import { compensateNow, noCompensateError } from "./compensate.ts";
import { acquireManually, operatorAction } from "./manual-lease.ts";

/**
 * What a person found out, or wants. `retry`: it surely did not happen, or may happen twice: send it again under its key.
 * `observe`: nothing is settled; the reconciler looks at the world at once, also where it had given up. `compensate`: the act
 * happened, and must not stand: what undoes it is due, whatever becomes of the run.
 */
export type Resolution =
  | { readonly as: "confirmed"; readonly value?: unknown }
  | { readonly as: "failed"; readonly error?: unknown }
  | { readonly as: "retry" }
  | { readonly as: "observe" }
  | { readonly as: "compensate"; readonly value?: unknown };

/** Which effect or obligation an operator settles, and how. */
export interface ResolveRequest extends AuditInfo {
  readonly run: string;
  readonly pos: number;
  /** 0 (default): the act. 1: its inverse; 2 and up: inverses of surplus acts. */
  readonly sub?: number;
  readonly resolution: Resolution;
}

/**
 * A person settles a doubt: an act or an inverse that is UNKNOWN or STUCK. Under the item's lease, taken over with the
 * person's name and reason, so that whoever was looking into it is fenced; the first to settle it wins. A run that is
 * stuck on it goes on by itself. An act that is confirmed can still be undone, under the lease of its run.
 */
export async function resolve(deps: ReactorDeps, resolving: ResolveRequest): Promise<void> {
  const { store, tenant } = deps;
  const { resolution } = resolving;
  const effect = await findEffect(deps, resolving);
  if (resolution.as === "compensate" && effect.role === "effect" && effect.status === "CONFIRMED") {
    return compensateNow(deps, { ...resolving, name: effect.name });
  }
  assertInDoubt(effect, resolving);
  const target = { journal: effect.item! };
  // Before its lease is taken: a call that is refused fences nobody, and leaves no term behind.
  const records = await readAll((from) => store.read.journal(tenant, target, { from }));
  assertResolvable(deps, effect, records, resolving);
  const manual = { reactor: "reconciler", condition: "any" } as const;
  const { lease, term } = await acquireManually(deps, target, resolving, manual);
  try {
    const item = await loadItem(deps, lease, term);
    try {
      assertResolvable(deps, item.effect, item.records, resolving);
      const acted = operatorAction(resolving, "resolve", resolution);
      switch (resolution.as) {
        case "confirmed":
        case "compensate": {
          const { as, value } = resolution;
          // What confirms an act arms what undoes it, and only its definition says what that is: whoever has it goes on.
          if (!item.isCompensation && item.definition === undefined) {
            return await item.finish([acted], {
              nextReactor: "reconciler",
              waitingFor: [`a process that has effect ${item.effect.name}`],
            });
          }
          const settled = item.settled({ to: "CONFIRMED", reason: "operator", value });
          return await item.finish([
            acted,
            settled,
            ...(as === "compensate" ? item.dueObligation(value) : item.armedObligation(value)),
          ]);
        }
        case "observe":
          return await item.finish([acted], { nextReactor: "reconciler" });
        case "failed": {
          const { error } = resolution;
          return await item.finish([acted, item.settled({ to: "FAILED", reason: "operator", error })]);
        }
        case "retry":
          return await item.finish([acted, item.settled({ to: "PENDING", reason: "operator" })], {
            nextReactor: item.actor,
          });
      }
    } catch (error) {
      await item.fail().catch(() => false);
      throw error;
    }
  } finally {
    lease.end("released");
  }
}

async function findEffect({ store, tenant }: ReactorDeps, { run, pos, sub = 0 }: ResolveRequest): Promise<EffectRow> {
  if ((await store.read.run(tenant, run)) === undefined) {
    throw notFound("run", run);
  }
  const found = (await store.read.effects(tenant, { run, from: pos })).find(
    (effect) => effect.pos === pos && effect.sub === sub,
  );
  if (found === undefined) {
    throw new TapeError("TAPE_BAD_INPUT", `run ${run} has no effect at ${pos}.${sub}`, { run, pos, sub });
  }
  return found;
}

function assertResolvable(
  { runner }: ReactorDeps,
  effect: EffectRow,
  records: readonly JournalRecord[],
  resolving: ResolveRequest,
): void {
  assertInDoubt(effect, resolving);
  const { name, role } = effect;
  const { as } = resolving.resolution;
  const said = operatorWord(records).as;
  if (said === "confirmed" || said === "compensate") throw settledBefore(resolving);
  const definition = name === null ? undefined : runner.effects.get(name);
  if (as === "compensate" && definition !== undefined && definition.compensate === undefined)
    throw noCompensateError(resolving, name);
  if (as !== "observe" || (definition === undefined && name !== null)) return; // whoever has its definition knows
  const observe = role === "compensation" ? definition?.compensate?.observe : definition?.observe;
  if (observe === undefined) throw noObserver(resolving, name);
}

function assertInDoubt(effect: EffectRow, { run, resolution }: ResolveRequest): void {
  const { status, name, pos, sub, role } = effect;
  if ((status !== "UNKNOWN" && status !== "STUCK") || effect.item === null) {
    const message = `${name} of run ${run} is ${status}: only what is UNKNOWN or STUCK can be resolved`;
    throw new TapeError("TAPE_ILLEGAL_TRANSITION", message, { run, pos, sub, status });
  }
  if (role === "compensation" && resolution.as === "retry" && name === null) {
    const message = `the surplus effect at ${pos}.${sub} of run ${run} has no compensate: compensate it manually, then resolve it as confirmed`;
    throw new TapeError("TAPE_BAD_INPUT", message, { run, pos, sub });
  }
  if (role === "compensation" && resolution.as === "compensate") {
    const message = `${pos}.${sub} of run ${run} is what undoes an act; nothing undoes it in its turn`;
    throw new TapeError("TAPE_BAD_INPUT", message, { run, pos, sub });
  }
  if (role === "compensation" && resolution.as === "failed") {
    const message = `undoing ${name} is owed: resolve it as confirmed, or have it done again`;
    throw new TapeError("TAPE_BAD_INPUT", message, { run, pos, sub });
  }
}

function noObserver({ run, pos, sub = 0 }: ResolveRequest, name: string | null): TapeError {
  const message = `${name ?? "the surplus act"} of run ${run} has no observe: nobody can look`;
  return new TapeError("TAPE_NO_OBSERVER", message, { run, pos, sub });
}

/** The first who says what happened is believed, also while the one who can write it down has not come by yet. */
function settledBefore({ run, pos, sub = 0 }: ResolveRequest): TapeError {
  const message = "somebody has already said that it happened; a process that has its definition will settle it";
  return new TapeError("TAPE_ILLEGAL_TRANSITION", message, { run, pos, sub });
}
