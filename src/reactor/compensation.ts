import { runAttempt } from "../engine/item/attempt.ts";
import { isPoison } from "../engine/item/attempts.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
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
  const vanished = item.status === "COMMITTED";
  if (vanished && (effect.semantics === "non_idempotent" || isPoison(item))) {
    // The one who was undoing it vanished, and the other side would not notice a second time; or it vanished too often.
    return item.finish([item.settled({ to: "UNKNOWN", reason: "lease_lost" })], { nextReactor: "reconciler" });
  }
  if (!vanished && item.status !== "PENDING") return item.handOff();
  if (definition?.compensate === undefined) return item.park("compensation", `an inverse for effect ${effect.name}`);
  const { run } = definition.compensate;
  const { args, result } = item.args as { args: unknown; result: unknown };
  const before = vanished ? [item.settled({ to: "PENDING", reason: "lease_lost" })] : [];
  await runAttempt(deps, item, definition, (fx) => run(args, result, fx), before);
}
