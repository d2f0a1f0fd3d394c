import { momentOf } from "../lease/belief.ts";
import { TapeError } from "../model/errors.ts";
import type { NewRecord } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";
import { openItem } from "./items.ts";
import type { Ground } from "./reactor.ts";

/** What a person found out. `again`: it surely did not happen, or may happen twice: send it again under its key. */
export type Resolution =
  | { readonly as: "happened"; readonly value?: unknown }
  | { readonly as: "failed"; readonly error?: unknown }
  | { readonly as: "again" };

export interface Resolving {
  readonly run: string;
  readonly pos: number;
  /** 0 (default): the act. 1: its inverse; 2 and up: inverses of surplus acts. */
  readonly sub?: number;
  readonly resolution: Resolution;
  readonly by: string;
  readonly reason: string;
}

/**
 * A person settles a doubt: an act or an inverse that is UNKNOWN or STUCK. Under the item's lease, taken over with the
 * person's name and reason, so that whoever was looking into it is fenced; the first to settle it wins. A run that is
 * stuck on it goes on by itself.
 */
export async function resolve(ground: Ground, resolving: Resolving): Promise<void> {
  const { store, keeper, tenant, clock, random } = ground;
  const { by, reason } = resolving;
  const effect = await doubtful(ground, resolving);
  const sent = momentOf(clock);
  const answer = await store.claim.acquire(tenant, {
    target: { journal: effect.item! },
    claimant: { ...keeper.identity, reactor: "reconciler", ttlMs: Math.round(keeper.timings.ttlMs) },
    nonce: random.bits63(),
    expect: "any",
    reason: "manual",
    by,
    why: reason,
  });
  if (!answer.ok) throw answer.error;
  const lease = keeper.adopt(`resolve ${effect.item}`, answer.term, sent);
  try {
    const item = await openItem(ground, lease, answer.term);
    try {
      assertDoubt(item.effect, resolving);
      if (item.told !== undefined) throw settledBefore(resolving);
      const acted: NewRecord = {
        kind: "operator.acted",
        data: { who: by, action: "resolve", reason, detail: resolving.resolution },
      };
      const { resolution } = resolving;
      switch (resolution.as) {
        case "happened": {
          const { value } = resolution;
          // What confirms an act arms what undoes it, and only its definition says what that is: whoever has it goes on.
          if (!item.inverse && item.definition === undefined) {
            return await item.finish([acted], {
              wants: "reconciler",
              waits: [`a process that has effect ${item.effect.name}`],
            });
          }
          const settled = item.settled({ to: "CONFIRMED", reason: "operator", value });
          return await item.finish([acted, settled, ...item.armed(value)]);
        }
        case "failed": {
          const { error } = resolution;
          return await item.finish([acted, item.settled({ to: "FAILED", reason: "operator", error })]);
        }
        case "again":
          return await item.finish([acted, item.settled({ to: "PENDING", reason: "operator" })], { wants: item.actor });
      }
    } catch (error) {
      await item.fail().catch(() => false);
      throw error;
    }
  } finally {
    lease.lost("given back");
  }
}

async function doubtful(ground: Ground, resolving: Resolving): Promise<EffectRow> {
  const { store, tenant } = ground;
  const { run, pos, sub = 0 } = resolving;
  if ((await store.read.run(tenant, run)) === undefined) {
    throw new TapeError("TAPE_RUN_UNKNOWN", `there is no run ${run}`, { run });
  }
  const found = (await store.read.effects(tenant, { run })).find((effect) => effect.pos === pos && effect.sub === sub);
  if (found === undefined) {
    throw new TapeError("TAPE_BAD_INPUT", `run ${run} has no effect at ${pos}.${sub}`, { run, pos, sub });
  }
  assertDoubt(found, resolving);
  return found;
}

function assertDoubt(effect: EffectRow, { run, resolution }: Resolving): void {
  const { status, name, pos, sub, role } = effect;
  if ((status !== "UNKNOWN" && status !== "STUCK") || effect.item === null) {
    const message = `${name} of run ${run} is ${status}: only what is UNKNOWN or STUCK can be resolved`;
    throw new TapeError("TAPE_ILLEGAL_TRANSITION", message, { run, pos, sub, status });
  }
  if (role === "inverse" && resolution.as === "again" && name === null) {
    const message = `nobody knows how to undo the surplus act at ${pos}.${sub} of run ${run}: resolve it as happened when it is undone`;
    throw new TapeError("TAPE_BAD_INPUT", message, { run, pos, sub });
  }
  if (role === "inverse" && resolution.as === "failed") {
    const message = `undoing ${name} is owed: resolve it as happened, or have it done again`;
    throw new TapeError("TAPE_BAD_INPUT", message, { run, pos, sub });
  }
}

/** The first who says what happened is believed, also while the one who can write it down has not come by yet. */
function settledBefore({ run, pos, sub = 0 }: Resolving): TapeError {
  const message = "somebody has already said that it happened; a process that has its definition will settle it";
  return new TapeError("TAPE_ILLEGAL_TRANSITION", message, { run, pos, sub });
}
