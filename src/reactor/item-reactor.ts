import { errorFields } from "../base/reason.ts";
import { type ReactorDeps, retryDelayMs } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
import { loadItem } from "../engine/item/load.ts";
import { readClocks } from "../lease/belief.ts";
import type { Lease } from "../lease/lease.ts";
import { releaseJournal } from "../lease/release-journal.ts";
import type { Timings } from "../lease/timings.ts";
import { isTapeError } from "../model/errors.ts";
import type { Term } from "../model/lease.ts";
import type { FindRequest, Share } from "../store/contract/store.ts";
import type { OnItemDone, Reactor, ReactorCounts, ReactorRound } from "./reactor.ts";

export interface ItemReactorOptions {
  readonly name: string;
  /** Besides items handed off to this reactor, it claims those whose crashed holder was one of these reactors. */
  readonly staleOf: readonly string[];
  /** Works on one item and releases it with `finish`. An error that it throws concerns this item alone. */
  readonly work: (item: Item) => Promise<void>;
}

/** The skeleton of every reactor that works on items. A bad item never blocks or aborts the others. */
export function itemReactor(
  deps: ReactorDeps,
  options: ItemReactorOptions,
): Required<Omit<Reactor, "capacity" | "batch" | "dueInMs">> {
  const busy = new Map<string, number>();
  const count = (callee: string, change: 1 | -1): number => {
    const before = busy.get(callee) ?? 0;
    if (before + change === 0) busy.delete(callee);
    else busy.set(callee, before + change);
    return before;
  };
  const poll = async (limit: number, onItemDone: OnItemDone, perCallee?: number): Promise<ReactorRound> => {
    const sent = readClocks(deps.clock);
    const share = perCallee === undefined ? undefined : { max: perCallee, busy: busyItems(busy) };
    const terms = await claimItems(deps, options, limit, share);
    for (const { callee } of terms) if (callee !== undefined) count(callee, 1);
    let done = 0;
    let lagMs = 0;
    let unserved = 0;
    const all = terms.map(async (term) => {
      const item = await workOn(deps, options, term, sent);
      if (item?.handoff !== undefined && !item.failed) done++;
      if (item?.unserved) unserved++;
      lagMs = Math.max(lagMs, item?.lagMs ?? 0);
      const { callee } = term;
      onItemDone(item?.handoff, callee !== undefined && count(callee, -1) >= perCallee!);
    });
    const found = terms.length;
    const counts = (): ReactorCounts => ({
      found,
      done,
      failed: found - done,
      lagMs,
      ...(unserved > 0 && { unserved }),
    });
    return { found, done: Promise.all(all).then(counts) };
  };
  const runOnce = async (limit: number): Promise<ReactorCounts> => (await poll(limit, () => {})).done;
  return { name: options.name, onAgenda: true, poll, runOnce };
}

/** Reading and writing an item takes seconds; the calls in between are declared waits, each within its time-out. */
const itemMarginMs = 30_000;
const itemStallMs = ({ heartbeatMs }: Timings): number => Math.max(itemMarginMs, Math.ceil(3 * heartbeatMs));

/** A lost response is retried with the same nonce: the store then returns the same terms, so that none is lost. */
async function claimItems(
  deps: ReactorDeps,
  options: ItemReactorOptions,
  limit: number,
  share?: Share,
): Promise<Term[]> {
  const { store, keeper, tenant, random } = deps;
  const { name, staleOf } = options;
  const claimant = { ...keeper.claimant(name), maxStallMs: itemStallMs(keeper.timings) };
  const unshared = {
    claimant,
    nextReactor: name,
    staleOf,
    limit,
    nonce: random.bits63(),
    tenant,
    kind: "item",
  } as const;
  const request: FindRequest = share === undefined ? unshared : { ...unshared, share };
  try {
    return await store.claim.find(request);
  } catch (error) {
    if (!isTapeError(error, "TAPE_OUTCOME_UNKNOWN")) throw error;
    return store.claim.find(request);
  }
}

const busyItems = (busy: ReadonlyMap<string, number>): Share["busy"] =>
  [...busy].map(([callee, items]) => ({ callee, items }));

type ItemOutcome = Pick<Item, "handoff" | "lagMs"> & { readonly failed: boolean; readonly unserved?: boolean };

async function workOn(
  deps: ReactorDeps,
  options: ItemReactorOptions,
  term: Term,
  sent: ReturnType<typeof readClocks>,
): Promise<ItemOutcome | undefined> {
  const { keeper, log, store, tenant } = deps;
  const { name } = options;
  let lease: Lease | undefined;
  let item: Item | undefined;
  try {
    lease = keeper.adopt(`${name} ${term.journal}`, term, sent, { reactor: name });
    lease.timeProgress();
    item = await loadItem(deps, lease, term);
    await options.work(item);
    return { handoff: item.handoff, lagMs: item.lagMs, failed: false, unserved: item.unserved };
  } catch (error) {
    log("warn", "reactor.item_failed", { reactor: name, journal: term.journal, ...errorFields(error) });
    // The item is retried after a backoff. A lost lease has a new holder already, or expires.
    if (item !== undefined) {
      await item.fail().catch(() => false);
      return { handoff: item.handoff, lagMs: item.lagMs, failed: true };
    }
    if (lease === undefined) return undefined;
    const next = { nextReactor: name, delayMs: retryDelayMs(deps, unreadableRetries, { journal: term.journal }) };
    await releaseJournal(store, tenant, lease, term.head, next).catch(() => false);
    return { handoff: next, lagMs: 0, failed: true };
  } finally {
    lease?.end("the reactor is done with it");
  }
}

/** An item that cannot be read does not show how often it was tried. This backoff step is about half a minute. */
const unreadableRetries = 6;
