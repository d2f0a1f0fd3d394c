import { runAttempt } from "../engine/item/attempt.ts";
import { isPoison } from "../engine/item/attempts.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
import { verdictOnCrash } from "../model/attempt.ts";
import { itemReactor } from "./item-reactor.ts";
import type { Reactor } from "./reactor.ts";

/**
 * compensation: works on obligations that are due. The store grants only the newest unsettled obligation of a run, so
 * this file does not have to order them. The obligations of a healthy run are never due.
 */
export function compensation(deps: ReactorDeps): Reactor {
  const work = (item: Item) => compensate(deps, item);
  return itemReactor(deps, { name: "compensation", staleOf: ["compensation"], work });
}

async function compensate(deps: ReactorDeps, item: Item): Promise<void> {
  const { effect, definition } = item;
  const crashed = item.status === "COMMITTED" ? verdictOnCrash(effect.semantics, isPoison(item)) : undefined;
  if (crashed?.to === "UNKNOWN") return item.finish([item.settled(crashed)], { nextReactor: "reconciler" });
  if (crashed === undefined && item.status !== "PENDING") return item.handOff();
  if (definition?.compensate === undefined) return item.park("compensation", `compensate of effect ${effect.name}`);
  const { run } = definition.compensate;
  const { args, result } = item.args as { args: unknown; result: unknown };
  const before = crashed === undefined ? [] : [item.settled(crashed)];
  await runAttempt(deps, item, definition, (fx) => run(args, result, fx), before);
}
