import { backoffMs } from "../base/backoff.ts";
import { defined } from "../base/defined.ts";
import { isUnstorable, resultIn } from "../engine/effects/evidence.ts";
import { isExhausted, isPoison, surplusEvidence } from "../engine/item/attempts.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
import { maxErrorChars, toStoredError } from "../engine/replay/stored-value.ts";
import type { Handoff } from "../lease/release-journal.ts";
import { isInterrupted, resendsOf, unknownAtEnd, verdictOnAbsence, verdictOnCrash } from "../model/attempt.ts";
import type { JournalRecord, NewRecord } from "../model/records.ts";
import { NotSent, type Observation } from "../sdk/outcomes.ts";
import { itemReactor } from "./item-reactor.ts";
import { isHandedOver, LongPending, observePending } from "./long-pending.ts";
import { inconclusive, observed, observeOnce } from "./observation.ts";
import type { Reactor } from "./reactor.ts";

/** Inconclusive observations before the effect needs an operator: some minutes of them. */
const maxObservations = 10;
const observeBackoff = { baseMs: 1_000, capMs: 60_000 };

/** Records that end the item's term, and its handoff. */
type ItemVerdict = readonly [records: readonly NewRecord[], next: Handoff];
const done: Handoff = {};

/**
 * reconciler: effects in doubt. It weighs evidence, then observes upstream; it never guesses or retries blindly. With
 * `pendingAfterMs` it also observes outbox effects that have been due for longer, once, before they are sent.
 */
export function reconciler(deps: ReactorDeps, { pendingAfterMs }: { readonly pendingAfterMs?: number } = {}): Reactor {
  const work = (item: Item) => reconcile(deps, item);
  const reactor = itemReactor(deps, { name: "reconciler", staleOf: ["outbox", "reconciler"], work });
  if (pendingAfterMs === undefined) return reactor;
  const pending = new LongPending(deps, pendingAfterMs);
  return {
    ...reactor,
    dueInMs: () => pending.dueInMs,
    async poll(limit, onItemDone, perCallee) {
      await pending.claimDue();
      return reactor.poll(limit, onItemDone, perCallee);
    },
    async runOnce(limit) {
      await pending.claimDue();
      return reactor.runOnce(limit);
    },
  };
}

async function reconcile(deps: ReactorDeps, item: Item): Promise<void> {
  if (item.status === "DISPATCHED" || item.status === "COMMITTED") {
    const verdict = verdictOnCrash(item.effect.semantics, isPoison(item));
    if (verdict.to === "PENDING") return item.finish([item.settled(verdict)], { nextReactor: item.actor });
    await item.write([item.settled(verdict)]);
  }
  // Deciding the run's outcome hands over an effect that awaits a retry, if an earlier attempt may have happened.
  if (item.status === "PENDING" && item.effect.uncertain && !item.isCompensation && (await item.runIsEnding()))
    await item.write([item.settled(unknownAtEnd)]);
  // Evidence that arrives during the decision makes the store reject the verdict. Then reconcile again, evidence first.
  const onNewEvidence = () => reconcile(deps, item);
  // Without the definition this process does not know the compensation: a verdict now would arm no obligation.
  const isOpen = item.status === "UNKNOWN" || item.status === "STUCK";
  const verdict = isOpen ? item.operatorVerdict : undefined;
  const isObservable = item.status === "UNKNOWN" || item.observeRequested;
  const isPending = isHandedOver(item);
  const canDecide = verdict !== undefined || isObservable || isPending || surplusEvidence(item).length > 0;
  if (canDecide && item.definition === undefined) {
    const { connector, name } = item.effect;
    return item.park("reconciler", connector === null ? `effect ${name}` : `connector ${connector} and effect ${name}`);
  }
  if (verdict?.compensate) {
    const settled = item.settled({ to: "CONFIRMED", reason: "operator", value: verdict.value });
    return item.finish([settled, ...item.dueObligation(verdict.value)], done);
  }
  if (verdict !== undefined) return item.finish(item.confirmed("operator", verdict), done);
  const known = isObservable ? await verdictFromEvidence(deps, item) : await verdictAfterwards(deps, item);
  if (known !== undefined) return item.finish(...known, onNewEvidence);
  if (isPending) return observePending(deps, item, onNewEvidence);
  if (!isObservable) return item.handOff();
  await observe(deps, item, onNewEvidence);
}

/** The verdict that a late owner's evidence allows. undefined: the evidence does not decide. */
async function verdictFromEvidence(deps: ReactorDeps, item: Item): Promise<ItemVerdict | undefined> {
  const { effect, evidence } = item;
  const isNonIdempotent = effect.semantics === "non_idempotent";
  // If the upstream deduplicates, any attempt that happened confirms the effect. Otherwise only the last is in doubt.
  const happened = evidence.findLast(
    (entry) => entry.happened && (!isNonIdempotent || entry.attempt === effect.attempt),
  );
  if (happened !== undefined) return [item.confirmed("evidence", resultIn(happened)), done];
  const denial = evidence.findLast((entry) => entry.attempt === effect.attempt);
  if (denial === undefined || !isNonIdempotent) return undefined; // an earlier attempt may have happened
  const { error } = denial;
  if (item.isCompensation)
    return [[item.settled({ to: "PENDING", reason: "not_sent", error })], { nextReactor: item.actor }];
  return (
    (await verdictOnUnsent(deps, item, error)) ?? [[item.settled({ to: "FAILED", reason: "evidence", error })], done]
  );
}

/**
 * The attempt was not sent: it is retried by its policy, as if the sender itself had reported so. An attempt that was
 * interrupted before sending does not count. A run that is ending starts nothing more, so the effect fails.
 */
async function verdictOnUnsent(deps: ReactorDeps, item: Item, error: unknown): Promise<ItemVerdict | undefined> {
  const interrupted = isInterrupted(error);
  if (!(error instanceof NotSent) && !interrupted) return undefined;
  const ending = await item.runIsEnding();
  const { attempts, backoff } = item.definition!;
  // Counts every authorised attempt, not the failures of `item.history()`. The two differ where an earlier attempt was
  // interrupted, or an operator had the effect retried. A sender would then try once more; evidence settles FAILED.
  // That is safe, because nothing was sent; counting failures here would change the verdict on such journals.
  const failures = item.effect.attempt;
  if (ending || (!interrupted && failures >= attempts))
    return [[item.settled({ to: "FAILED", reason: "not_sent", error })], done];
  const delayMs = interrupted ? 0 : Math.ceil(backoffMs(failures, backoff, deps.random));
  return [[item.settled({ to: "PENDING", reason: "not_sent", error })], { nextReactor: item.actor, delayMs }];
}

/**
 * Evidence that the effect happened, although the verdict says otherwise or a later attempt confirmed it. The verdict
 * stands; each surplus effect is compensated, once.
 */
async function verdictAfterwards(deps: ReactorDeps, item: Item): Promise<ItemVerdict | undefined> {
  const surplus = surplusEvidence(item);
  if (surplus.length === 0) return undefined;
  return [
    await surplusObligations(
      deps,
      item,
      surplus.map(({ value }) => value),
    ),
    done,
  ];
}

async function observe(deps: ReactorDeps, item: Item, onNewEvidence: () => Promise<void>): Promise<void> {
  const { effect, observer } = item;
  if (observer === undefined) {
    // The effect keeps its status, and its journal states why.
    if (item.observeRequested) return finish([[observed(item, inconclusive("the effect has no observe"))], done]);
    // If the upstream deduplicates, the effect may be retried under its key. Otherwise it needs an operator.
    if (effect.semantics !== "non_idempotent") return finish(retryOrStick(deps, item, "unobservable"));
    return finish([stuck(item, "unobservable"), done]);
  }
  const startedAt = deps.clock.mono(); // before the call: absence counts from the observation's start
  const seen = await observeOnce(deps, item, observer);
  try {
    await finish(await judge(deps, item, seen, startedAt));
  } catch (error) {
    if (!isUnstorable(error)) throw error;
    const why = `the observed value cannot be stored: ${error.message}`;
    // A confirmed observation stands even if its value cannot be stored. Any other one then counts as inconclusive.
    if (seen.observed !== "confirmed") await finish(await judge(deps, item, inconclusive(why), startedAt));
    else
      await finish([
        [observed(item, seen, why), ...item.confirmed("observed", { error: toStoredError(error, maxErrorChars) })],
        done,
      ]);
  }

  function finish([records, next]: ItemVerdict): Promise<void> {
    return item.finish(records, next, onNewEvidence);
  }
}

async function judge(deps: ReactorDeps, item: Item, seen: Observation, startedAt: number): Promise<ItemVerdict> {
  const [records, next] = await verdictOn(deps, item, seen, startedAt);
  return [[observed(item, seen), ...records], next];
}

async function verdictOn(deps: ReactorDeps, item: Item, seen: Observation, startedAt: number): Promise<ItemVerdict> {
  const { effect } = item;
  switch (seen.observed) {
    case "confirmed":
      return [item.confirmed("observed", seen), done];
    case "duplicate":
      return [[...item.confirmed("duplicate", seen), ...(await surplusObligations(deps, item, seen.refs))], done];
    case "absent": {
      if (effect.semantics !== "non_idempotent" && (await isRetriedIfAbsent(item)))
        return retryOrStick(deps, item, "absent");
      // A paused sender may still send. Absence counts only if the observation started after the send window and the
      // settle delay.
      const openMs = seen.final ? 0 : await openForMs(deps, item, startedAt);
      if (openMs > 0) return [[], { nextReactor: "reconciler", delayMs: openMs }];
      // An obligation stays owed: a compensation that did not happen is retried.
      if (item.isCompensation) return retryOrStick(deps, item, "not_sent");
      return verdictIfAbsent(deps, item);
    }
    case "inconclusive": {
      const observations =
        1 +
        sinceResolved(item).filter((r) => r.kind === "effect.observed" && isInconclusive(r.data.observation)).length;
      if (observations >= maxObservations) return [stuck(item, "inconclusive"), done];
      return [
        [],
        { nextReactor: "reconciler", delayMs: Math.ceil(backoffMs(observations, observeBackoff, deps.random)) },
      ];
    }
  }
}

/** When the store's clock was set during the reads, the effect is observed again after this. */
const clockSetMs = 1_000;
const toleranceMs = 50;

/**
 * How much of the send window and the settle delay was left when the observation started, by the monotonic clock of this
 * process; 0: none. The store's wall clock may be set at any time, so the end of the window and the time are read close
 * together. Two reads of the time show whether it was set in between.
 */
async function openForMs({ store, clock, tenant }: ReactorDeps, item: Item, startedAt: number): Promise<number> {
  const from = clock.mono();
  const before = await store.read.now();
  const [effect] = await store.read.effects(tenant, { item: item.lease.term.journal });
  const passedMs = (await store.read.now()) - before;
  const readMs = clock.mono() - from;
  const wasSet = passedMs < -toleranceMs || passedMs > readMs + toleranceMs;
  if (wasSet || effect === undefined) return clockSetMs;
  // The earliest start that the reads allow. A step of the clock that is shorter than they took looks like time.
  const earliestStart = before - readMs - (from - startedAt);
  const until = (effect.sendUntil ?? 0) + (item.definition?.settleDelayMs ?? 0);
  return Math.max(0, Math.ceil(until - earliestStart) + 1);
}

/** Under the same keys: they identify the decision to call, and no attempt has used them up. */
async function verdictIfAbsent(deps: ReactorDeps, item: Item): Promise<ItemVerdict> {
  // A late owner of an earlier attempt knows better than the observation.
  const happened = item.evidence.findLast((entry) => entry.happened);
  if (happened !== undefined) return [item.confirmed("evidence", resultIn(happened)), done];
  const { absentRetries: maxResends, backoff } = item.definition!;
  const resends = resendsOf(item.records);
  const verdict = verdictOnAbsence({
    semantics: item.effect.semantics,
    resends,
    maxResends,
    ending: await item.runIsEnding(),
  });
  if (verdict.to === "FAILED") return [[item.settled(verdict)], done];
  const delayMs = Math.ceil(backoffMs(resends + 1, backoff, deps.random));
  const { attempt, attemptToken } = item.effect;
  const absent = { attempt, token: String(attemptToken) };
  return [[item.settled({ ...verdict, absent })], { nextReactor: item.actor, delayMs }];
}

/** An obligation stays owed. An effect is retried while its policy allows, but not in a run that is ending. */
async function isRetriedIfAbsent(item: Item): Promise<boolean> {
  return item.isCompensation || (!isExhausted(item) && !(await item.runIsEnding()));
}

/** Needs an operator, and carries the error of the last attempt. An effect that is STUCK already stays so. */
function stuck(item: Item, reason: string): NewRecord[] {
  const error = item.lastError;
  return item.status === "STUCK" ? [] : [item.settled({ to: "STUCK", reason, ...defined({ error }) })];
}

const isInconclusive = (observation: string): boolean => observation === "inconclusive" || observation === "error";

/** An operator's resolution restarts the count. */
function sinceResolved({ records }: Item): readonly JournalRecord[] {
  return records.slice(records.findLastIndex(({ kind }) => kind === "operator.action") + 1);
}

/** Retries with growing delays while the policy has attempts left; after that the effect is stuck. */
function retryOrStick(deps: ReactorDeps, item: Item, reason: "absent" | "unobservable" | "not_sent"): ItemVerdict {
  if (isExhausted(item)) return [stuck(item, isPoison(item) ? "interrupted" : "exhausted"), done];
  const { failures } = item.history();
  const delayMs = failures === 0 ? 0 : Math.ceil(backoffMs(failures, item.definition!.backoff, deps.random));
  return [[item.settled({ to: "PENDING", reason })], { nextReactor: item.actor, delayMs }];
}

/**
 * One due obligation for each surplus effect. A surplus compensation has no compensation of its own, so it needs an
 * operator.
 */
async function surplusObligations(deps: ReactorDeps, item: Item, refs: readonly unknown[]): Promise<NewRecord[]> {
  const { definition, effect } = item;
  const { run, pos } = item.ref;
  const others = await deps.store.read.effects(deps.tenant, { run: item.runId, role: "compensation", from: pos });
  const free = Math.max(1, ...others.filter((other) => other.pos === pos).map(({ sub }) => sub)) + 1;
  const compensate = item.isCompensation ? undefined : definition?.compensate;
  return refs.map((found, k) => {
    const sub = free + k;
    const key = `${effect.key}:surplus:${sub}`;
    const args = { args: item.args, result: found };
    const data = { run, pos, sub, semantics: compensate?.semantics ?? "non_idempotent", key, args } as const;
    return { kind: "obligation.surplus", data: compensate === undefined ? data : { ...data, name: definition!.name } };
  });
}
