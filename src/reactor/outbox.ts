import { runAttempt } from "../engine/item/attempt.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
import { unknownAtEnd } from "../model/attempt.ts";
import { itemReactor } from "./item-reactor.ts";
import type { Reactor } from "./reactor.ts";

/**
 * outbox: effects that were handed over to be dispatched. The act is authorised by a durable record before it is done; an
 * attempt whose holder vanished is never sent again blindly: the reconciler finds it (staleOf there names us).
 */
export function outbox(deps: ReactorDeps): Reactor {
  return itemReactor(deps, { name: "outbox", staleOf: [], work: (item) => dispatch(deps, item) });
}

async function dispatch(deps: ReactorDeps, item: Item): Promise<void> {
  if (item.status !== "PENDING") return item.handOff(); // withdrawn, settled, or an attempt that somebody left behind
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

/** Reasons that an attempt leaves, as against those of the reconciler or an operator, who have it sent all the same. */
const ofAttempts: ReadonlySet<string | null> = new Set(["ack_lost", "lease_lost", "not_sent"]);

/**
 * An attempt may have happened, and the run is ending. That was decided while an attempt was under way, otherwise the
 * decision itself would have handed the item to the reconciler.
 */
async function isObservedFirst(item: Item): Promise<boolean> {
  const { effect, observer } = item;
  return effect.uncertain && observer !== undefined && ofAttempts.has(effect.reason) && item.runIsEnding();
}
