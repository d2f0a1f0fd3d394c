import { errorFields } from "../base/reason.ts";
import { isUnstorable } from "../engine/effects/evidence.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
import { readClocks } from "../lease/belief.ts";
import { releaseJournal } from "../lease/release-journal.ts";
import { unknownAfterWaiting } from "../model/attempt.ts";
import type { JournalRecord, NewRecord } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";
import { effectCursor } from "../store/list-cursors.ts";
import { readAll } from "../store/read-all.ts";
import { observed, observeOnce } from "./observation.ts";

/**
 * Long-PENDING effects: outbox effects that have been due for a long time, because no process sent them. An operator may
 * have done their work by hand meanwhile. So each is observed once, under its own lease, before it is sent: it is
 * confirmed, or goes back to the outbox.
 */

/** Effects of one page; inline effects are among them. */
const pageRows = 100;
const minEveryMs = 1_000;
const maxEveryMs = 60_000;

/** The effect waits to be sent, can be observed, and was not since it was handed over or last settled. */
export function isToBeObserved(item: Item): boolean {
  if (item.status !== "PENDING" || item.isCompensation) return false;
  const isUnserved = item.definition === undefined;
  return (isUnserved || item.observer !== undefined) && !wasObserved(item.records);
}

/** It was handed to the reconciler for that, unlike an effect whose sender crashed before its attempt. */
export function isHandedOver(item: Item): boolean {
  const ended = item.records.findLast(({ kind }) => kind === "term.ended");
  return ended?.kind === "term.ended" && ended.data.nextReactor === "reconciler" && isToBeObserved(item);
}

function wasObserved(records: readonly JournalRecord[]): boolean {
  const settled = records.findLastIndex(({ kind }) => kind === "effect.settled");
  return records.slice(settled + 1).some(({ kind }) => kind === "effect.observed");
}

/** Observes an effect that was not sent. Only a confirmation settles it; otherwise the outbox sends it. */
export async function observePending(deps: ReactorDeps, item: Item, onNewEvidence: () => Promise<void>): Promise<void> {
  const seen = await observeOnce(deps, item, item.observer!);
  // In doubt first: no attempt was made, and yet it may have happened.
  const inDoubt = item.settled(unknownAfterWaiting);
  const finish = (records: readonly NewRecord[], nextReactor?: string): Promise<void> =>
    item.finish(records, nextReactor === undefined ? {} : { nextReactor }, onNewEvidence);
  if (seen.observed === "duplicate") return finish([inDoubt], "reconciler");
  if (seen.observed !== "confirmed") return finish([observed(item, seen)], item.actor);
  try {
    await finish([inDoubt, observed(item, seen), ...item.confirmed("observed", seen)]);
  } catch (error) {
    if (!isUnstorable(error)) throw error;
    await finish([inDoubt], "reconciler"); // it observes again, and confirms without the value
  }
}

/** Finds long-PENDING effects and hands them to the reconciler, one page at a time. */
export class LongPending {
  readonly #deps: ReactorDeps;
  readonly #afterMs: number;
  #nextAt = Number.NEGATIVE_INFINITY;
  #after: string | undefined;

  constructor(deps: ReactorDeps, afterMs: number) {
    this.#deps = deps;
    this.#afterMs = afterMs;
  }

  /** Milliseconds until the next page. */
  get dueInMs(): number {
    return this.#nextAt - this.#deps.clock.mono();
  }

  /** Hands over the effects of the next page, if it is time. */
  async claimDue(): Promise<void> {
    const { clock, store, tenant, log } = this.#deps;
    if (this.dueInMs > 0) return;
    this.#nextAt = clock.mono() + Math.min(maxEveryMs, Math.max(minEveryMs, this.#afterMs / 4));
    const filter = { role: "effect", status: ["PENDING"], minAgeMs: this.#afterMs, limit: pageRows } as const;
    const after = this.#after === undefined ? {} : { after: this.#after };
    const page = await store.read.effects(tenant, { ...filter, ...after });
    const last = page.at(-1);
    this.#after = last === undefined || page.length < pageRows ? undefined : effectCursor(last);
    for (const effect of page) {
      if (effect.dispatch !== "outbox" || effect.item === null) continue;
      await this.#handOver(effect.item, effect).catch((error: unknown) =>
        log("warn", "reactor.item_failed", { reactor: "reconciler", journal: effect.item, ...errorFields(error) }),
      );
    }
  }

  async #handOver(journal: number, { name }: EffectRow): Promise<void> {
    const { store, tenant, keeper, random, clock, runner } = this.#deps;
    const definition = name === null ? undefined : runner.effects.get(name);
    if (definition?.observe === undefined) return; // this process cannot observe it
    const target = { journal };
    const records = await readAll((from) => store.read.journal(tenant, target, { from }));
    if (wasObserved(records) || (await store.read.now()) - dueAt(records) < this.#afterMs) return;
    const lease = await store.read.lease(tenant, target);
    if (lease?.nextReactor !== "outbox") return; // held, or handed over already
    const sent = readClocks(clock);
    const claimant = keeper.claimant("reconciler");
    const acquired = await store.claim.acquire(tenant, { target, claimant, nonce: random.bits63(), expect: "free" });
    if (!acquired.ok) return;
    const { term } = acquired;
    const held = keeper.adopt(`reconciler ${journal}`, term, sent);
    try {
      // A term in between has changed what was read: the outbox decides again.
      const isSame = term.head === records.length + 1;
      const next = { nextReactor: isSame ? "reconciler" : "outbox" };
      await releaseJournal(store, tenant, held, term.head, next);
    } finally {
      held.end("the reactor is done with it");
    }
  }
}

/** When the effect fell due: after the delay of its last release. */
function dueAt(records: readonly JournalRecord[]): number {
  const ended = records.findLast(({ kind }) => kind === "term.ended");
  if (ended?.kind !== "term.ended") return records[0]?.at ?? Number.POSITIVE_INFINITY;
  return ended.at + (ended.data.delayMs ?? 0);
}
