import { setTimeout as delay } from "node:timers/promises";
import type { EventData, TapeEvent } from "../../src/events/event.ts";
import type { Delivery, Sink } from "../../src/events/sink.ts";

/** The event of a run's record. */
export function eventOf(run: string, seq: number, more: Partial<TapeEvent> = {}): TapeEvent {
  const journal = Number(run.replace(/\D/g, "")) + 100;
  const at = 1_794_848_992_501;
  return {
    ...{ specversion: "1.0", id: `${journal}:${seq}:${at}`, source: "/tape/store/default" },
    ...{ type: "dev.tape.step.done", subject: run, time: new Date(at).toISOString(), partitionkey: run },
    ...{ sequence: `${seq}`.padStart(10, "0"), tapeepoch: 0, tapejournal: `${journal}`, tapetoken: "1" },
    datacontenttype: "application/json",
    dataschema: "urn:tape:event:step.done:1",
    data: dataOf(run, seq),
    ...more,
  };
}

/** `data`: what the record has. */
export const dataOf = (run: string, seq: number, data: unknown = {}): EventData => ({
  run: { id: run, workflow: "order", version: null, labels: {}, root: run, parent: null },
  record: { kind: "step.done", seq, inbox: false, at: 1, token: "1", data },
});

/** Events of several runs, interleaved as a feed has them. */
export function feedOf(runs: number, records: number): TapeEvent[] {
  return Array.from({ length: runs * records }, (_, k) => eventOf(`run-${k % runs}`, Math.floor(k / runs) + 1));
}

/** What arrived of each run, in the order of its arrival. */
export function sequences(arrived: readonly { subject?: string; sequence: string }[]): Record<string, number[]> {
  const runs = Object.groupBy(arrived, ({ subject }) => subject ?? "");
  const numbers = Object.entries(runs).map(([run, own]) => [run, own!.map(({ sequence }) => Number(sequence))]);
  return Object.fromEntries(numbers) as Record<string, number[]>;
}

export const upTo = (count: number): number[] => Array.from({ length: count }, (_, k) => k + 1);

export const context = () => ({ signal: new AbortController().signal, attempt: 1, token: 1n });

/**
 * Sends as a lane does: in order, in batches, and again from the first event that has to wait. Returns what is never
 * taken, and how often it had to wait.
 */
export async function lane(
  sink: Sink,
  events: readonly TapeEvent[],
  batch = 20,
): Promise<{ readonly waits: number; readonly refused: readonly string[] }> {
  let waits = 0;
  const refused: string[] = [];
  for (let at = 0, attempt = 1; at < events.length; ) {
    const part = events.slice(at, at + batch);
    const deliveries = await sink
      .send(part, { ...context(), attempt })
      .then((given) => given ?? part.map((): Delivery => "ok"))
      .catch((later: unknown) => part.map((): Delivery => ({ later })));
    const failed = deliveries.findIndex((one) => one !== "ok");
    const failure = deliveries[failed];
    at += failed < 0 ? part.length : failed;
    attempt = failed < 0 ? 1 : attempt + 1;
    if (typeof failure !== "object") continue;
    if ("never" in failure) refused.push(part[failed]!.id);
    if ("never" in failure) at += 1;
    else waits += 1;
    await delay(20);
  }
  return { waits, refused };
}
