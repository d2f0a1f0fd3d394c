import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, times } from "./draw.ts";
import type { Fault } from "./plan-faults.ts";
import type { Op } from "./program.ts";

/** The run that clients talk to. */
export const talker = "talker";

/** A request to the talker. Several may have one key: then the first counts. */
export interface PlannedAsk {
  readonly atMs: number;
  readonly key: string;
  /** The sender, which differs between requests with the same key. */
  readonly from: number;
}

/** A call of one of the talker's callbacks, in the order in which they open. */
export interface PlannedCallback {
  readonly atMs: number;
  readonly which: number;
  /** The token has another position, or another MAC. */
  readonly wrong: "position" | "mac" | undefined;
}

export interface PlannedTalk {
  readonly ops: readonly Op[];
  /** Each starts the talker with a signal, or sends the signal to the talker that lives. */
  readonly starts: readonly { readonly atMs: number; readonly key: string }[];
  readonly asks: readonly PlannedAsk[];
  readonly calls: readonly PlannedCallback[];
}

/** Share of plans with a talker. */
const talkShare = 0.07;

/**
 * A run that publishes, answers requests and waits for callbacks. Drawn from a generator of its own, so that plans
 * without it stay unchanged. Not in a rewound store: what its clients know might be forgotten.
 */
export function withTalk<P extends Pausable>(
  seed: number | string,
  plan: P,
): P & { readonly talk: PlannedTalk | undefined } {
  const random = seededRandom(`talk ${seed}`);
  if (plan.rewind !== undefined || !chance(random, talkShare)) return { ...plan, talk: undefined };
  const answers = 2 + random.int(3);
  const keys = 1 + random.int(answers + 1);
  const asks = times(keys + 2, (k) => ({ atMs: random.int(16_000), key: `ask ${k % keys}`, from: k }));
  const calls = times(4 + random.int(3), (k) => ({
    atMs: random.int(14_000),
    which: random.int(2),
    wrong: k === 0 ? ("position" as const) : k === 1 ? ("mac" as const) : undefined,
  }));
  const starts = times(2 + random.int(3), (k) => ({ atMs: random.int(6_000), key: `start ${k}` }));
  const talk = { ops: opsOf(random, answers, starts.length), starts, asks, calls };
  const pauses = chance(random, 0.5) ? [] : times(plan.replicas, (replica) => pauseOf(random, replica, plan.ttlMs));
  return { ...plan, talk, faults: [...plan.faults, ...pauses] };
}

interface Pausable {
  readonly rewind: unknown;
  readonly replicas: number;
  readonly ttlMs: number;
  readonly faults: readonly Fault[];
}

/** A holder is paused before a write, for longer than its lease lasts: it resumes as a stale driver. */
function pauseOf(random: Random, replica: number, ttlMs: number): Fault {
  return {
    replica,
    at: "append",
    n: 2 + random.int(10),
    edge: "before",
    kind: "pause",
    forMs: ttlMs + random.int(8_000),
  };
}

const publishOf = (value: number): Op => ({ op: "publish", name: value % 3 === 0 ? "stage" : "progress", value });

/** The first of both is the one that a stale driver may still be writing. */
const shownOf = (value: number): Op[] => {
  const label: Op = { op: "label", value };
  return value % 2 === 0 ? [publishOf(value), label] : [label, publishOf(value)];
};

/** Publishes and labels itself between all of its waits: a stale driver has something older to publish. */
function opsOf(random: Random, answers: number, starts: number): Op[] {
  const waits: Op[] = [
    ...times(answers, (): Op => ({ op: "answer" })),
    ...times(Math.min(2, starts), (): Op => ({ op: "gate", name: "left" })),
    { op: "sleep", ms: 2 * random.int(2_000) },
    { op: "callback" },
    { op: "callback" },
  ];
  const shuffled = waits.map((op) => ({ op, at: random.int(1_000) })).sort((a, b) => a.at - b.at);
  return shuffled.flatMap(({ op }, k): Op[] => [
    ...times(4, (n): Op[] => [...shownOf(4 * k + n), { op: "step", fails: false }]).flat(),
    op,
  ]);
}
