import type { BrokerEvent, Delivery } from "./shape.ts";

/** Whether a delivery lets the next event of the same run be sent. */
const isSettled = (delivery: Delivery): boolean => delivery === "ok" || "never" in delivery;

/** Sends events one after the other. Behind the first that has to wait, none is sent. */
export async function oneByOne(
  events: readonly BrokerEvent[],
  sendOne: (event: BrokerEvent) => Promise<Delivery>,
): Promise<readonly Delivery[]> {
  const deliveries: Delivery[] = [];
  for (const event of events) {
    const last = deliveries.at(-1);
    if (last !== undefined && !isSettled(last)) deliveries.push(last);
    else deliveries.push(await sendOne(event).catch((later: unknown) => ({ later })));
  }
  return deliveries;
}

/** The same for each run, and all runs at once. */
export async function runByRun(
  events: readonly BrokerEvent[],
  sendOne: (event: BrokerEvent) => Promise<Delivery>,
): Promise<readonly Delivery[]> {
  const deliveries = new Map<BrokerEvent, Delivery>();
  const runs = Object.values(Object.groupBy(events, ({ partitionkey }) => `run ${partitionkey}`));
  await Promise.all(
    runs.map(async (own = []) => {
      const settled = await oneByOne(own, sendOne);
      for (const [k, event] of own.entries()) deliveries.set(event, settled[k]!);
    }),
  );
  return events.map((event) => deliveries.get(event)!);
}
