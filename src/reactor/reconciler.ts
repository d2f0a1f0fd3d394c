import { backoffMs } from "../base/backoff.ts";
import { defined } from "../base/defined.ts";
import { describeThrown } from "../base/thrown.ts";
import { isUnstorable, resultIn } from "../engine/effects/evidence.ts";
import { isExhausted, isPoison } from "../engine/item/attempts.ts";
import { observeWithTimeout } from "../engine/item/call.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
import { maxErrorChars, toStoredError } from "../engine/replay/stored-value.ts";
import type { Handoff } from "../lease/release-journal.ts";
import { isInterrupted, unknownAtEnd, verdictOnCrash } from "../model/attempt.ts";
import type { JournalRecord, NewRecord } from "../model/records.ts";
import { NotSent, type Observation } from "../sdk/outcomes.ts";
import { itemReactor } from "./item-reactor.ts";
import type { Reactor } from "./reactor.ts";

/** Looks that told nothing, or tries that led nowhere, before a person is asked: some minutes of them. */
const maxObservations = 10;
const observeTimeoutMs = 30_000;
const observeBackoff = { baseMs: 1_000, capMs: 60_000 };

/** Records that end the item's term, and who is wanted next. */
type ItemVerdict = readonly [records: readonly NewRecord[], next: Handoff];
const done: Handoff = {};

/** reconciler: what nobody knows. Evidence first, then a look at the world; never a guess, never a blind retry. */
export function reconciler(deps: ReactorDeps): Reactor {
  const work = (item: Item) => reconcile(deps, item);
  return itemReactor(deps, { name: "reconciler", staleOf: ["outbox", "reconciler"], work });
}

async function reconcile(deps: ReactorDeps, item: Item): Promise<void> {
  if (item.status === "DISPATCHED" || item.status === "COMMITTED") {
    const verdict = verdictOnCrash(item.effect.semantics, isPoison(item));
    if (verdict.to === "PENDING") return item.finish([item.settled(verdict)], { nextReactor: item.actor });
    await item.write([item.settled(verdict)]);
  }
  // The decision of the run's outcome hands us what was to be sent again, if it may have happened.
  if (item.status === "PENDING" && item.effect.uncertain && !item.isCompensation && (await item.runIsEnding()))
    await item.write([item.settled(unknownAtEnd)]);
  // Evidence that arrives while we decide refuses the verdict as a whole: then it is weighed, first of all.
  const heard = () => reconcile(deps, item);
  // Without its definition nobody here knows what would undo it: a verdict now would arm nothing.
  const doubtful = item.status === "UNKNOWN" || item.status === "STUCK";
  const told = doubtful ? item.operatorVerdict : undefined;
  const open = item.status === "UNKNOWN" || item.observeRequested;
  const evident = told !== undefined || open || (item.status === "FAILED" && item.evidence.length > 0);
  if (evident && item.definition === undefined) {
    const { connector, name } = item.effect;
    return item.park("reconciler", connector === null ? `effect ${name}` : `connector ${connector} and effect ${name}`);
  }
  if (told?.undo) {
    const settled = item.settled({ to: "CONFIRMED", reason: "operator", value: told.value });
    return item.finish([settled, ...item.dueObligation(told.value)], done);
  }
  if (told !== undefined) return item.finish(item.confirmed("operator", told), done);
  const known = open ? await verdictFromEvidence(deps, item) : await verdictAfterFailure(deps, item);
  if (known !== undefined) return item.finish(...known, heard);
  if (!open) return item.handOff();
  await observe(deps, item, heard);
}

/** What a late owner said of the attempt that is in doubt. undefined: nothing that decides it. */
async function verdictFromEvidence(deps: ReactorDeps, item: Item): Promise<ItemVerdict | undefined> {
  const { effect, evidence } = item;
  const careful = effect.semantics === "non_idempotent";
  // Where the other side dedupes, any attempt that happened is the act; where it does not, only the last is in doubt.
  const happened = evidence.findLast((said) => said.happened && (!careful || said.attempt === effect.attempt));
  if (happened !== undefined) return [item.confirmed("evidence", resultIn(happened)), done];
  const not = evidence.findLast((said) => said.attempt === effect.attempt);
  if (not === undefined || !careful) return undefined; // an earlier try of a repeatable act may have happened
  const { error } = not;
  if (item.isCompensation)
    return [[item.settled({ to: "PENDING", reason: "not_sent", error })], { nextReactor: item.actor }];
  return (
    (await verdictOnUnsent(deps, item, error)) ?? [[item.settled({ to: "FAILED", reason: "evidence", error })], done]
  );
}

/**
 * Not even sent: it is sent again by its policy, as if the sender itself had said so. An attempt that was cut short before
 * it was sent costs none. In a run that is ending nothing is begun any more: it did not happen, and that is all.
 */
async function verdictOnUnsent(deps: ReactorDeps, item: Item, error: unknown): Promise<ItemVerdict | undefined> {
  const cut = isInterrupted(error);
  if (!(error instanceof NotSent) && !cut) return undefined;
  const ending = await item.runIsEnding();
  const { attempts, backoff } = item.definition!;
  // Counts every authorised attempt, not the failures of `item.history()`. The two differ where an earlier attempt was
  // interrupted, or an operator had the effect retried: a sender would then try once more, evidence settles FAILED. That is
  // safe, because nothing was sent; counting failures here would change the verdict on such journals.
  const failures = item.effect.attempt;
  if (ending || (!cut && failures >= attempts))
    return [[item.settled({ to: "FAILED", reason: "not_sent", error })], done];
  const delayMs = cut ? 0 : Math.ceil(backoffMs(failures, backoff, deps.random));
  return [[item.settled({ to: "PENDING", reason: "not_sent", error })], { nextReactor: item.actor, delayMs }];
}

/** Evidence of "it happened" after FAILED(ABSENT): the verdict stands, the act is surplus and must be undone. */
async function verdictAfterFailure(deps: ReactorDeps, item: Item): Promise<ItemVerdict | undefined> {
  const happened = item.evidence.findLast((said) => said.happened);
  const owed = item.records.some(({ kind }) => kind === "obligation.surplus");
  if (item.status !== "FAILED" || happened === undefined || owed) return undefined;
  if (item.effect.semantics === "read") return undefined; // it changed nothing: there is nothing to undo
  return [await surplusObligations(deps, item, [happened.value]), done];
}

async function observe(deps: ReactorDeps, item: Item, heard: () => Promise<void>): Promise<void> {
  const { effect, observer } = item;
  if (observer === undefined) {
    // It stays as it is, and its journal says why.
    if (item.observeRequested) return finish([[observed(item, inconclusive("it has no observe"))], done]);
    // Nobody can look. What the other side dedupes may be sent again under its key; anything else needs a person.
    if (effect.semantics !== "non_idempotent") return finish(retryOrStick(deps, item, "unobservable"));
    return finish([stuck(item, "unobservable"), done]);
  }
  const begun = await deps.store.read.now(); // before the look: absence counts from when it began
  const carried = await observeWithTimeout(item, deps, observeTimeoutMs, (signal) =>
    observer(item.args as never, item.context(effect.attempt, signal)),
  );
  const seen: Observation =
    carried.kind === "returned"
      ? asObservation(carried.value)
      : inconclusive(`the look failed: ${String(toStoredError(carried.error, maxErrorChars))}`);
  try {
    await finish(await judge(deps, item, seen, begun));
  } catch (error) {
    if (!isUnstorable(error)) throw error;
    const why = `what was seen cannot be stored: ${error.message}`;
    // It was seen to have happened: that holds, whatever it came to. What else was seen is as good as nothing.
    if (seen.observed !== "confirmed") await finish(await judge(deps, item, inconclusive(why), begun));
    else
      await finish([
        [observed(item, seen, why), ...item.confirmed("observed", { error: toStoredError(error, maxErrorChars) })],
        done,
      ]);
  }

  function finish([records, next]: ItemVerdict): Promise<void> {
    return item.finish(records, next, heard);
  }
}

async function judge(deps: ReactorDeps, item: Item, seen: Observation, begun: number): Promise<ItemVerdict> {
  const [records, next] = await verdictOn(deps, item, seen, begun);
  return [[observed(item, seen), ...records], next];
}

function observed(item: Item, seen: Observation, why?: string): NewRecord {
  const observation = seen.observed;
  const detail = why === undefined ? seen : { observed: observation, why };
  return { kind: "effect.observed", data: { ...item.ref, observation, detail } };
}

async function verdictOn(deps: ReactorDeps, item: Item, seen: Observation, begun: number): Promise<ItemVerdict> {
  const { effect, definition } = item;
  switch (seen.observed) {
    case "confirmed":
      return [item.confirmed("observed", seen), done];
    case "duplicate":
      return [[...item.confirmed("duplicate", seen), ...(await surplusObligations(deps, item, seen.refs))], done];
    case "absent": {
      if (effect.semantics !== "non_idempotent" && (await isRetriedIfAbsent(item)))
        return retryOrStick(deps, item, "absent");
      // A paused sender may still send: absence counts only if the look began after its deadline and the settle delay.
      const until = (effect.sendUntil ?? 0) + (definition?.settleDelayMs ?? 0);
      if (!seen.final && begun <= until)
        return [[], { nextReactor: "reconciler", delayMs: Math.ceil(until - begun) + 1 }];
      // What is owed stays owed: an inverse that surely did not happen is called again.
      if (item.isCompensation) return retryOrStick(deps, item, "not_sent");
      return [[item.settled({ to: "FAILED", reason: "ABSENT" })], done];
    }
    case "inconclusive": {
      const looks =
        1 +
        sinceResolved(item).filter((r) => r.kind === "effect.observed" && isInconclusive(r.data.observation)).length;
      if (looks >= maxObservations) return [stuck(item, "inconclusive"), done];
      return [[], { nextReactor: "reconciler", delayMs: Math.ceil(backoffMs(looks, observeBackoff, deps.random)) }];
    }
  }
}

/** What is owed stays owed. An effect is sent again while its policy allows, but not by a run that is ending. */
async function isRetriedIfAbsent(item: Item): Promise<boolean> {
  return item.isCompensation || (!isExhausted(item) && !(await item.runIsEnding()));
}

/** A person must, and hears what the last attempt said. What was looked at again because they asked is as stuck as before. */
function stuck(item: Item, reason: string): NewRecord[] {
  const error = item.lastError;
  return item.status === "STUCK" ? [] : [item.settled({ to: "STUCK", reason, ...defined({ error }) })];
}

const isInconclusive = (observation: string): boolean => observation === "inconclusive" || observation === "error";

/** A person who has it tried again begins the count anew. */
function sinceResolved({ records }: Item): readonly JournalRecord[] {
  return records.slice(records.findLastIndex(({ kind }) => kind === "operator.action") + 1);
}

/** Back to its actor, later each time, while its policy has attempts left; then a person is asked. */
function retryOrStick(deps: ReactorDeps, item: Item, reason: "absent" | "unobservable" | "not_sent"): ItemVerdict {
  if (isExhausted(item)) return [stuck(item, isPoison(item) ? "interrupted" : "exhausted"), done];
  const { failures } = item.history();
  const delayMs = failures === 0 ? 0 : Math.ceil(backoffMs(failures, item.definition!.backoff, deps.random));
  return [[item.settled({ to: "PENDING", reason })], { nextReactor: item.actor, delayMs }];
}

/** One due obligation for each surplus act. What was undone once too often cannot be undone by undoing: a person must. */
async function surplusObligations(deps: ReactorDeps, item: Item, refs: readonly unknown[]): Promise<NewRecord[]> {
  const { definition, effect } = item;
  const { run, pos } = item.ref;
  const others = await deps.store.read.effects(deps.tenant, { run: item.runId, role: "compensation", from: pos });
  const free = Math.max(1, ...others.filter((other) => other.pos === pos).map(({ sub }) => sub)) + 1;
  const undo = item.isCompensation ? undefined : definition?.compensate;
  return refs.map((found, k) => {
    const sub = free + k;
    const key = `${effect.key}:surplus:${sub}`;
    const args = { args: item.args, result: found };
    const data = { run, pos, sub, semantics: undo?.semantics ?? "non_idempotent", key, args } as const;
    return { kind: "obligation.surplus", data: undo === undefined ? data : { ...data, name: definition!.name } };
  });
}

const inconclusive = (why: string): Observation => ({
  observed: "inconclusive",
  reason: String(toStoredError(why, maxErrorChars)),
});

/** Observers are the user's: what is not an answer, or cannot be read, tells nothing. */
function asObservation(answer: unknown): Observation {
  try {
    const seen = answer as Observation | null | undefined;
    switch (seen?.observed) {
      case "confirmed":
        return { observed: "confirmed", value: seen.value };
      case "absent":
        return { observed: "absent", final: seen.final === true };
      case "inconclusive":
        return inconclusive(seen.reason);
      case "duplicate":
        return Array.isArray(seen.refs)
          ? { observed: "duplicate", value: seen.value, refs: [...seen.refs] }
          : inconclusive("a duplicate without refs");
      default:
        return inconclusive("observe gave no outcome");
    }
  } catch (error) {
    return inconclusive(`what observe answered cannot be read: ${describeThrown(error)}`);
  }
}
