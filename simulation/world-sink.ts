import { fnv1a } from "../src/base/fnv1a.ts";
import { type Random, seededRandom } from "../src/base/random.ts";
import type { TapeEvent } from "../src/events/event.ts";
import type { Delivery, Sink } from "../src/events/sink.ts";
import type { DeadLetter } from "../src/model/dead-letter.ts";
import { letterStates } from "../src/model/dead-letter.ts";
import type { Store } from "../src/store/contract/store.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import { chance } from "./draw.ts";
import type { PlannedSink } from "./plan-sinks.ts";
import { tenant } from "./tenants.ts";

export const sinkName = "world";

/** An event at the receiver, in the order of arrival. */
export interface SinkArrival {
  readonly id: string;
  readonly journal: string;
  readonly inbox: boolean;
  readonly seq: number;
  /** When its record was written; with the kind it tells records apart. */
  readonly recordedAt: number;
  readonly kind: string;
  readonly token: bigint;
  readonly storeEpoch: number;
  readonly what: "received" | "refused";
}

/** What the receiver knows at the end, and what the store says about its sink. */
export interface SinkEvidence {
  readonly plan: PlannedSink;
  readonly arrivals: readonly SinkArrival[];
  /** The ids of all records of the tenant when everything had settled; undefined: it never did. */
  readonly records: readonly string[] | undefined;
  /** Records that were written in the ten minutes after that. */
  readonly writtenAtRest: number;
  readonly letters: readonly DeadLetter[];
}

/** A receiver of events with a ledger of its own. It is slow, loses responses, refuses some events, and has outages. */
export class WorldSink {
  readonly arrivals: SinkArrival[] = [];
  records: readonly string[] | undefined;
  writtenAtRest = 0;
  readonly plan: PlannedSink;
  readonly #time: VirtualTime;
  readonly #random: Random;

  constructor(plan: PlannedSink, time: VirtualTime, seed: number | string) {
    this.plan = plan;
    this.#time = time;
    this.#random = seededRandom(`receiver ${seed}`);
  }

  /** The sink of one process: its requests arrive even if the process is paused meanwhile. */
  on(process: TestProcess): Sink {
    return {
      label: "world",
      limits: { events: 4 },
      send: (events, { token }) => process.callUpstream("sink", () => this.#receive(events, token)),
    };
  }

  async lettersOf(store: Store): Promise<DeadLetter[]> {
    const pages = letterStates.map((state) => store.read.deadLetters(tenant, sinkName, { state }));
    return (await Promise.all(pages)).flat();
  }

  async #receive(events: readonly TapeEvent[], token: bigint): Promise<readonly Delivery[]> {
    const { travelMs, slowMs, lossShare, outage } = this.plan;
    const isSlow = slowMs > 0 && fnv1a(events[0]!.partitionkey) % 2 === 0;
    await this.#time.sleep(this.#random.int(travelMs) + (isSlow ? this.#random.int(slowMs) : 0));
    const now = this.#time.now;
    if (outage !== undefined && now >= outage.fromMs && now < outage.toMs) throw new Error("503");
    const deliveries: Delivery[] = [];
    for (const event of events) {
      const refused = this.#refuses(event);
      this.#enter(event, token, refused ? "refused" : "received");
      deliveries.push(refused ? { never: "poison", code: "422" } : "ok");
      if (refused) break;
    }
    await this.#time.sleep(this.#random.int(travelMs));
    if (chance(this.#random, lossShare)) throw new Error("the response was lost");
    return deliveries;
  }

  #refuses({ id, type }: TapeEvent): boolean {
    const { poisonEvery } = this.plan;
    return poisonEvery > 0 && type === "dev.tape.step.done" && fnv1a(id) % poisonEvery === 0;
  }

  #enter(
    { id, tapejournal, sequence, data, type, tapeepoch }: TapeEvent,
    token: bigint,
    what: SinkArrival["what"],
  ): void {
    this.arrivals.push({
      ...{ id, journal: tapejournal, seq: Number(sequence), token, what, storeEpoch: tapeepoch },
      ...{ inbox: data.record?.inbox ?? false, recordedAt: data.record?.at ?? 0, kind: type.replace("dev.tape.", "") },
    });
  }
}
