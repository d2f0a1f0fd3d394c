import type { AcquireRequest } from "../model/lease.ts";
import { mayEnterAgenda } from "../model/on-agenda.ts";
import type { AppendRequest, ClaimOps, FencedOps, IntakeOps, Store, TransactionOps } from "../store/contract/store.ts";
import type { AlarmKeeper } from "./alarm-keeper.ts";

/**
 * Writes that put nothing on the agenda, by group and method. Every other write is armed, so a method that is added to
 * the contract is armed until it is listed here. The conformance suite runs on the armed store and compares the agenda
 * before and after each of these.
 */
export const neverOnAgenda: ReadonlySet<string> = new Set([
  "intake.putValue",
  "intake.deleteValue",
  "intake.deleteSchedule",
  "intake.prune",
  "intake.eraseRun",
  "intake.setQuota",
  "intake.putToken",
  "intake.revokeToken",
  "intake.recordAudit",
  "intake.touchToken",
  "intake.reportProcess",
  "intake.removeProcess",
  "claim.renew", // the term ends later, or see `renewWith`
  "claim.callbackSecret",
  "claim.pause", // named leases only, which are not on the agenda
]);

type Method = (...args: unknown[]) => Promise<unknown>;

/**
 * The same store for a process that relies on alarms: before each write that can put something on the agenda, an alarm
 * is set. A crash at any moment then leaves nothing that no alarm finds. See {@link AlarmKeeper} for the rule and its times.
 */
export function armedStore<S extends Store>(store: S, keeper: AlarmKeeper): S {
  const intake = (inner: IntakeOps): IntakeOps => armed("intake", inner, keeper);
  return {
    ...store,
    intake: intake(store.intake),
    claim: {
      ...armed("claim", store.claim, keeper, (name, [, request]) => name === "acquire" && isNamed(request)),
      renew: renewWith(store.claim, keeper),
    },
    fenced: fencedOf(store.fenced, keeper),
    ...(store.within && { within: withinOf(store.within, keeper) }),
    once: (key) => intake(store.once(key)),
  };
}

/** A named lease is not on the agenda: its holder is a process that keeps running. */
function isNamed(request: unknown): boolean {
  const target: unknown = (request as Partial<AcquireRequest> | undefined | null)?.target;
  return typeof target === "object" && target !== null && "name" in target;
}

function armed<G extends object>(
  group: string,
  target: G,
  keeper: AlarmKeeper,
  exempt: (name: string, args: readonly unknown[]) => boolean = () => false,
): G {
  const wrapped = new Map<PropertyKey, unknown>();
  for (const name of Object.keys(target)) {
    const method = Reflect.get(target, name) as unknown;
    if (typeof method !== "function" || neverOnAgenda.has(`${group}.${name}`)) continue;
    const call = method as Method;
    wrapped.set(name, (...args: unknown[]) =>
      exempt(name, args) ? call.apply(target, args) : keeper.cover(() => call.apply(target, args)),
    );
  }
  return { ...target, ...Object.fromEntries(wrapped) };
}

/** A refused renewal of a holder without progress makes its run due at once, before the alarm of the term's end. */
function renewWith(claim: ClaimOps, keeper: AlarmKeeper): ClaimOps["renew"] {
  return async (renewals) => {
    const results = await claim.renew(renewals);
    const isStalled = results.some((one) => !one.ok && one.error.code === "TAPE_LEASE_STALLED");
    return isStalled ? keeper.cover(async () => results) : results;
  };
}

/** Plain records, such as those of steps, need no alarm: the claim of their term has set one. */
function fencedOf(fenced: FencedOps, keeper: AlarmKeeper): FencedOps {
  const enters = (entry: AppendRequest | undefined): boolean => {
    const { records } = entry ?? {};
    return Array.isArray(records) && records.some((record) => record?.data != null && mayEnterAgenda(record));
  };
  return {
    ...fenced,
    append: (fence, entry) =>
      enters(entry) ? keeper.cover(() => fenced.append(fence, entry)) : fenced.append(fence, entry),
    appendAll: (batch) =>
      Array.isArray(batch) && batch.some((item) => enters(item?.[1]))
        ? keeper.cover(() => fenced.appendAll(batch))
        : fenced.appendAll(batch),
  };
}

/**
 * A transaction of the caller commits when the caller decides. An alarm is kept ahead for two more bounds, so a commit
 * within that time is found; one that comes later is found by the next sweep.
 */
function withinOf(within: TransactionOps, keeper: AlarmKeeper): TransactionOps {
  const openMs = 2 * keeper.boundMs;
  return {
    createRun: (...args) => keeper.cover(() => within.createRun(...args), openMs),
    signal: (...args) => keeper.cover(() => within.signal(...args), openMs),
    step: (source, body) => {
      const step = within.step(source, body);
      return {
        execute: () => step.execute(),
        abort: (error) => step.abort(error),
        commit: (...args) => keeper.cover(() => step.commit(...args)),
        rollback: () => step.rollback(),
      };
    },
  };
}
