import type { TapeEvent } from "../event.ts";
import type { Delivery } from "../sink.ts";

/**
 * Sends the events of each run one after the other, and all runs at once. Behind one that the sink has not received none
 * of its run is sent: it is sent again first, and would arrive behind them.
 */
export async function runByRun(
  events: readonly TapeEvent[],
  sendOne: (event: TapeEvent) => Promise<Delivery>,
): Promise<readonly Delivery[]> {
  const deliveries = new Map<TapeEvent, Delivery>();
  const runs = Map.groupBy(events, ({ partitionkey }) => partitionkey);
  const sendRun = async (own: readonly TapeEvent[]): Promise<void> => {
    let last: Delivery = "ok";
    for (const event of own) {
      if (last === "ok") last = await sendOne(event).catch((later: unknown) => ({ later }));
      deliveries.set(event, last);
    }
  };
  await Promise.all([...runs.values()].map(sendRun));
  return events.map((event) => deliveries.get(event)!);
}
