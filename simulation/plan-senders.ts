import { seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import type { Fault } from "./plan-faults.ts";
import { calmArgs, type PlannedRun } from "./plan-runs.ts";

/** Share of plans in which the sender of an effect is paused between its authorisation and its call. */
const senderShare = 0.05;
/** Long enough for another process to notice that the lease has expired. */
const noticeMs = 7_000;

interface SenderPlan {
  readonly runs: readonly PlannedRun[];
  readonly replicas: number;
  readonly ttlMs: number;
  readonly faults: readonly Fault[];
}

/**
 * Every replica is paused after the first write that authorises one of its effects, for longer than its lease lasts. It resumes
 * with the response, when its lease belongs to another process. Drawn from a generator of its own, so that plans without
 * such a sender stay unchanged.
 */
export function withPausedSenders<P extends SenderPlan>(seed: number | string, plan: P): P {
  const random = seededRandom(`paused senders ${seed}`);
  if (plan.replicas < 2 || !chance(random, senderShare)) return plan;
  const effect = pick(random, ["observed.inline", "observed.outbox", "idempotent.inline", "idempotent.outbox"]);
  const run: PlannedRun = {
    id: "paused-sender",
    workflow: "once",
    program: { ops: [{ op: "effect", effect, args: calmArgs(random), caught: true }], attempts: 1 },
    atMs: random.int(2_000),
    cancelAtMs: undefined,
    usd: undefined,
    again: undefined,
  };
  const pauses = times(plan.replicas, (replica): Fault => {
    const forMs = plan.ttlMs + noticeMs + random.int(4_000);
    return { replica, at: "dispatch", n: 1, edge: "after", kind: "pause", forMs };
  });
  return { ...plan, runs: [...plan.runs, run], faults: [...pauses, ...plan.faults] };
}
