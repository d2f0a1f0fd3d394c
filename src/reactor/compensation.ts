import { runAttempt } from "../engine/item/attempt.ts";
import { isPoison } from "../engine/item/attempts.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
import { verdictOnCrash } from "../model/attempt.ts";
import { itemReactor } from "./item-reactor.ts";
import type { Reactor } from "./reactor.ts";

/**
 * compensation: obligations that are due. The store hands out only the newest unsettled one of a run, so the order is not
 * this file's business. A healthy run's obligations are never due.
 */
export function compensation(deps: ReactorDeps): Reactor {
  const work = (item: Item) => compensate(deps, item);
  return itemReactor(deps, { name: "compensation", staleOf: ["compensation"], work });
}

async function compensate(deps: ReactorDeps, item: Item): Promise<void> {
  const { effect, definition } = item;
  const vanished = item.status === "COMMITTED" ? verdictOnCrash(effect.semantics, isPoison(item)) : undefined;
  if (vanished?.to === "UNKNOWN") return item.finish([item.settled(vanished)], { nextReactor: "reconciler" });
  if (vanished === undefined && item.status !== "PENDING") return item.handOff();
  if (definition?.compensate === undefined) return item.park("compensation", `an inverse for effect ${effect.name}`);
  const { run } = definition.compensate;
  const { args, result } = item.args as { args: unknown; result: unknown };
  const before = vanished === undefined ? [] : [item.settled(vanished)];
  await runAttempt(deps, item, definition, (fx) => run(args, result, fx), before);
}
