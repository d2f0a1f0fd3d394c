import { setTimeout as delay } from "node:timers/promises";
import type { BrokerEvent, BrokerSink, Delivery } from "../../src/events/sinks/shape.ts";

/** An event with every attribute. */
export interface FullEvent extends BrokerEvent {
  readonly specversion: "1.0";
  readonly time: string;
  readonly sequence: string;
  readonly tapejournal: number;
  readonly tapetoken: string;
  readonly traceparent?: string;
  readonly data: { readonly run?: { readonly id: string; readonly workflow: string }; readonly record: unknown };
}

/** The event of a run's record. */
export function eventOf(run: string, seq: number, more: Partial<FullEvent> = {}): FullEvent {
  const journal = Number(run.replace(/\D/g, "")) + 100;
  return {
    ...{ specversion: "1.0", id: `${journal}:${seq}:1794848992501`, source: "/tape/store/default" },
    ...{ type: "dev.tape.step.done", subject: run, time: "2026-11-16T12:29:52.501Z", partitionkey: run },
    ...{ sequence: `${seq}`.padStart(10, "0"), tapeepoch: 0, tapejournal: journal, tapetoken: "1" },
    data: { run: { id: run, workflow: "order" }, record: { kind: "step.done", seq } },
    ...more,
  };
}

/** Events of several runs, interleaved as a feed has them. */
export function feedOf(runs: number, records: number): FullEvent[] {
  return Array.from({ length: runs * records }, (_, k) => eventOf(`run-${k % runs}`, Math.floor(k / runs) + 1));
}

/** What arrived of each run, in the order of its arrival. */
export function sequences(arrived: readonly { subject: string; sequence: string }[]): Record<string, number[]> {
  const runs = Object.groupBy(arrived, ({ subject }) => subject);
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
  sink: BrokerSink,
  events: readonly BrokerEvent[],
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
    const waiting = deliveries.findIndex((one) => one !== "ok" && "later" in one);
    const settled = waiting < 0 ? part.length : waiting;
    for (const [k, one] of deliveries.slice(0, settled).entries()) if (one !== "ok") refused.push(part[k]!.id);
    at += settled;
    attempt = waiting < 0 ? 1 : attempt + 1;
    if (waiting >= 0) waits += 1;
    if (waiting >= 0) await delay(20);
  }
  return { waits, refused };
}
