import { runAttempt } from "../engine/item/attempt.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
import { unknownAtEnd } from "../model/attempt.ts";
import { itemReactor } from "./item-reactor.ts";
import { isToBeObserved } from "./long-pending.ts";
import type { Reactor } from "./reactor.ts";

/**
 * outbox: dispatches effects that were handed over to it. A durable record authorises each attempt before it starts. An
 * attempt whose holder crashed is never retried blindly: the reconciler claims it (its `staleOf` names the outbox).
 */
export function outbox(deps: ReactorDeps, { pendingAfterMs }: { readonly pendingAfterMs?: number } = {}): Reactor {
  const work = (item: Item) => dispatch(deps, item, pendingAfterMs);
  return itemReactor(deps, { name: "outbox", staleOf: [], work });
}

async function dispatch(deps: ReactorDeps, item: Item, pendingAfterMs = Number.POSITIVE_INFINITY): Promise<void> {
  if (item.status !== "PENDING") return item.handOff(); // withdrawn, settled, or an attempt of a crashed holder
  if (item.lagMs >= pendingAfterMs && item.definition !== undefined && isToBeObserved(item)) {
    return item.finish([], { nextReactor: "reconciler" });
  }
  if (await isObservedFirst(item)) return item.finish([item.settled(unknownAtEnd)], { nextReactor: "reconciler" });
  const { definition } = item;
  if (definition?.body === undefined) {
    const { connector, name } = item.effect;
    const missing = connector === null ? `a body for effect ${name}` : `connector ${connector} and effect ${name}`;
    return item.park("outbox", missing);
  }
  const { body } = definition;
  await runAttempt(deps, item, definition, (fx) => body(item.args, fx));
}

/** Reasons that an attempt records. With a reason of the reconciler or an operator the effect is sent all the same. */
const attemptReasons: ReadonlySet<string | null> = new Set(["ack_lost", "lease_lost", "not_sent"]);

/**
 * An earlier attempt may have happened, and the run is ending. The run's outcome was decided while that attempt was in
 * progress; otherwise the decision itself would have handed the item to the reconciler.
 */
async function isObservedFirst(item: Item): Promise<boolean> {
  const { effect, observer } = item;
  return effect.uncertain && observer !== undefined && attemptReasons.has(effect.reason) && item.runIsEnding();
}
