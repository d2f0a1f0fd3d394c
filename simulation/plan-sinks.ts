import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import type { Fault, Rewind } from "./plan-faults.ts";

/** A receiver of events, and the fan-outs that send to it from every replica. */
export interface PlannedSink {
  readonly from: "now" | "start";
  readonly lanes: number;
  readonly window: number;
  /** Longest travel time of a request and of its response. */
  readonly travelMs: number;
  /** Requests about every second run take up to this much longer, so that its lane falls behind. */
  readonly slowMs: number;
  /** Share of responses that are lost after the receiver has entered the events. */
  readonly lossShare: number;
  /** It refuses one in this many events of steps, whenever they are sent; 0: none. */
  readonly poisonEvery: number;
  /** It answers nothing but errors in this time. */
  readonly outage: { readonly fromMs: number; readonly toMs: number } | undefined;
}

/** Share of plans with a sink; more of those whose store is rewound, which are few. */
const sinkShare = 0.08;
const rewoundShare = 0.4;

interface SinkHost {
  readonly rewind: Rewind | undefined;
  readonly replicas: number;
  readonly ttlMs: number;
  readonly faults: readonly Fault[];
  readonly runs: readonly unknown[];
}

/** A fan-out dies or is paused at a send or at a checkpoint. */
function sinkFaults(random: Random, { replicas, ttlMs }: SinkHost): Fault[] {
  return times(1 + random.int(3), (): Fault => {
    const kind = chance(random, 0.7) ? "crash" : "pause";
    const forMs = kind === "crash" ? 500 + random.int(5_000) : ttlMs + random.int(10_000);
    const at = chance(random, 0.6) ? "effect" : "append";
    const edge = chance(random, 0.5) ? "before" : "after";
    return { replica: random.int(replicas), at, n: 1 + random.int(25), edge, kind, forMs };
  });
}

/** Drawn from a generator of its own, so that plans without a sink stay unchanged. */
export function withSink<P extends SinkHost>(
  seed: number | string,
  plan: P,
): P & { readonly sink: PlannedSink | undefined } {
  const random = seededRandom(`sink ${seed}`);
  const drawn = chance(random, plan.rewind === undefined ? sinkShare : rewoundShare);
  // A process that is wedged must lose its runs: no fault of the sink may end it.
  const isWedged = JSON.stringify(plan.runs).includes('"wedgeMs"');
  if (!drawn || isWedged) return { ...plan, sink: undefined };
  const fromMs = random.int(8_000);
  return {
    ...plan,
    faults: [...plan.faults, ...sinkFaults(random, plan)],
    sink: {
      from: chance(random, 0.5) ? "start" : "now",
      lanes: pick(random, [1, 2, 4]),
      window: pick(random, [5, 20, 200]),
      travelMs: pick(random, [5, 80, 1_500]),
      slowMs: pick(random, [0, 6_000]),
      lossShare: pick(random, [0, 0, 0.1]),
      poisonEvery: pick(random, [0, 3, 6]),
      outage: chance(random, 0.3) ? { fromMs, toMs: fromMs + 500 + random.int(9_000) } : undefined,
    },
  };
}
