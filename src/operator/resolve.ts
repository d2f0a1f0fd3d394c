import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import { loadItem } from "../engine/item/load.ts";
import { operatorResolution } from "../engine/item/operator-resolution.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { JournalRecord } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";
import type { AuditInfo } from "../store/contract/store.ts";
import { readAll } from "../store/read-all.ts";
import { compensateNow, noCompensateError } from "./compensate.ts";
import { laterMs } from "./later.ts";
import { acquireManually, operatorAction } from "./manual-lease.ts";

/**
 * How an operator resolves an effect. `retry`: it surely did not happen, or may happen twice, so it is sent again under
 * its key. `observe`: nothing is settled; the reconciler observes the upstream at once or after `in`, even if it had
 * given up.
 * `compensate`: the effect happened and must be compensated, whatever the outcome of the run.
 */
export type Resolution =
  | { readonly as: "confirmed"; readonly value?: unknown }
  | { readonly as: "failed"; readonly error?: unknown }
  | { readonly as: "retry" }
  | { readonly as: "observe"; readonly in?: Duration }
  | { readonly as: "compensate"; readonly value?: unknown };

type WireResolution = Exclude<Resolution, { as: "observe" }> | { readonly as: "observe"; readonly inMs?: number };

/** On the wire a deferred observation has milliseconds. */
export function resolutionToWire(run: string, resolution: Resolution): WireResolution {
  if (resolution.as !== "observe" || resolution.in === undefined) return resolution as WireResolution;
  return { as: "observe", inMs: laterMs(`observation of run ${run}`, resolution.in) };
}

export function resolutionFromWire(resolution: WireResolution): Resolution {
  if (resolution.as !== "observe" || resolution.inMs === undefined) return resolution as Resolution;
  return { as: "observe", in: resolution.inMs };
}

/** Which effect or obligation an operator settles, and how. */
export interface ResolveRequest extends AuditInfo {
  readonly run: string;
  readonly pos: number;
  /** 0 (default): the effect. 1: its compensation. 2 and up: compensations of surplus effects. */
  readonly sub?: number;
  /** How the effect is settled. */
  readonly resolution: Resolution;
}

/**
 * Settles an effect or a compensation that is UNKNOWN or STUCK. It takes over the item's lease with the operator's name
 * and reason, so that a reactor that works on it is fenced; the first to settle it wins. A run that is STUCK on it
 * resumes. A confirmed effect can still be compensated, under the lease of its run.
 */
export async function resolve(deps: ReactorDeps, request: ResolveRequest): Promise<void> {
  const { store, tenant } = deps;
  const { resolution } = request;
  const after = resolution.as === "observe" ? resolution.in : undefined;
  const delayMs = after === undefined ? undefined : laterMs(`observation of run ${request.run}`, after);
  const effect = await findEffect(deps, request);
  if (resolution.as === "compensate" && effect.role === "effect" && effect.status === "CONFIRMED") {
    return compensateNow(deps, { ...request, name: effect.name });
  }
  assertInDoubt(effect, request);
  const target = { journal: effect.item! };
  // Checked before the lease is acquired: a rejected call fences no holder and leaves no term.
  const records = await readAll((from) => store.read.journal(tenant, target, { from }));
  assertResolvable(deps, effect, records, request);
  const manual = { reactor: "reconciler", condition: "any" } as const;
  const { lease, term } = await acquireManually(deps, target, request, manual);
  try {
    const item = await loadItem(deps, lease, term);
    try {
      assertResolvable(deps, item.effect, item.records, request);
      const action = operatorAction(request, "resolve", resolution);
      switch (resolution.as) {
        case "confirmed":
        case "compensate": {
          const { as, value } = resolution;
          // A confirmation arms the obligation, which needs the definition. A process that has it settles the effect.
          if (!item.isCompensation && item.definition === undefined) {
            return await item.finish([action], {
              nextReactor: "reconciler",
              waitingFor: [`a process that has effect ${item.effect.name}`],
            });
          }
          const settled = item.settled({ to: "CONFIRMED", reason: "operator", value });
          return await item.finish([
            action,
            settled,
            ...(as === "compensate" ? item.dueObligation(value) : item.armedObligation(value)),
          ]);
        }
        case "observe":
          return await item.finish([action], { nextReactor: "reconciler", ...defined({ delayMs }) });
        case "failed": {
          const { error } = resolution;
          return await item.finish([action, item.settled({ to: "FAILED", reason: "operator", error })]);
        }
        case "retry":
          return await item.finish([action, item.settled({ to: "PENDING", reason: "operator" })], {
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
  request: ResolveRequest,
): void {
  assertInDoubt(effect, request);
  const { name, role } = effect;
  const { as } = request.resolution;
  const earlier = operatorResolution(records).as;
  if (earlier === "confirmed" || earlier === "compensate") throw settledBefore(request);
  const definition = name === null ? undefined : runner.effects.get(name);
  if (as === "compensate" && definition !== undefined && definition.compensate === undefined)
    throw noCompensateError(request, name);
  if (as !== "observe" || (definition === undefined && name !== null)) return; // the rest needs it
  const observe = role === "compensation" ? definition?.compensate?.observe : definition?.observe;
  if (observe === undefined) throw noObserver(request, name);
}

function assertInDoubt(effect: EffectRow, { run, resolution }: ResolveRequest): void {
  const { status, name, pos, sub, role } = effect;
  if ((status !== "UNKNOWN" && status !== "STUCK") || effect.item === null) {
    const message = `${name} of run ${run} is ${status}: only an UNKNOWN or STUCK effect can be resolved`;
    throw new TapeError("TAPE_ILLEGAL_TRANSITION", message, { run, pos, sub, status });
  }
  if (role === "compensation" && resolution.as === "retry" && name === null) {
    const message = `the surplus effect at ${pos}.${sub} of run ${run} has no compensate: compensate it manually, then resolve it as confirmed`;
    throw new TapeError("TAPE_BAD_INPUT", message, { run, pos, sub });
  }
  if (role === "compensation" && resolution.as === "compensate") {
    const message = `${pos}.${sub} of run ${run} is a compensation and cannot be compensated itself`;
    throw new TapeError("TAPE_BAD_INPUT", message, { run, pos, sub });
  }
  if (role === "compensation" && resolution.as === "failed") {
    const message = `the compensation of ${name} is owed: resolve it as confirmed or retry`;
    throw new TapeError("TAPE_BAD_INPUT", message, { run, pos, sub });
  }
}

function noObserver({ run, pos, sub = 0 }: ResolveRequest, name: string | null): TapeError {
  const message = `${name ?? "the surplus effect"} of run ${run} has no observe function`;
  return new TapeError("TAPE_NO_OBSERVER", message, { run, pos, sub });
}

/** The first confirmation counts, even before a process with the definition has settled the effect. */
function settledBefore({ run, pos, sub = 0 }: ResolveRequest): TapeError {
  const message = "an operator has already confirmed it; a process that has its definition will settle it";
  return new TapeError("TAPE_ILLEGAL_TRANSITION", message, { run, pos, sub });
}
