import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import { type EffectArgs, effectNames, type SimulatedFault, slowEffectNames } from "./effects.ts";
import type { LanesOp } from "./lanes.ts";
import type { Op, Program } from "./program.ts";
import type { Size } from "./size.ts";

export interface PlannedRun {
  readonly id: string;
  readonly workflow: "once" | "thrice" | "limited";
  readonly program: Program;
  readonly atMs: number;
  readonly cancelAtMs: number | undefined;
  readonly usd: number | undefined;
  /** When it is started again: with the same input, or with another under the same id. */
  readonly again: { readonly atMs: number; readonly other: boolean } | undefined;
}

export interface PlannedSignal {
  readonly run: string;
  readonly gate: string;
  readonly atMs: number;
  /** Absent: sent once, and never repeated. */
  readonly key: string | undefined;
}

export function runOf(random: Random, id: string, size: Size): PlannedRun {
  const retried = chance(random, 0.2);
  const ops = chance(random, 0.04) ? [grandchildOf(random)] : opsOf(random, 1 + random.int(size.ops), size.depth);
  return {
    id,
    workflow: retried ? "thrice" : "once",
    program: { ops: chance(random, 0.2) ? [...ops, { op: "fail" }] : ops, attempts: retried ? 3 : 1 },
    atMs: random.int(3_000),
    cancelAtMs: chance(random, 0.2) ? random.int(size.lastsMs) : undefined,
    usd: chance(random, 0.8) ? 10 : undefined,
    again: chance(random, 0.1) ? { atMs: random.int(12_000), other: chance(random, 0.4) } : undefined,
  };
}

/** Share of plans with lanes. */
const laneShare = 0.06;

/** Drawn from a generator of its own, so that plans without lanes stay unchanged. */
export function withLanes(seed: number | string, runs: readonly PlannedRun[]): readonly PlannedRun[] {
  const random = seededRandom(`side by side ${seed}`);
  if (!chance(random, laneShare)) return runs;
  const chosen = pick(random, runs);
  const { ops } = chosen.program;
  const at = random.int(ops.length);
  const program = { ...chosen.program, ops: [...ops.slice(0, at), lanesOf(random), ...ops.slice(at)] };
  return runs.map((run) => (run === chosen ? { ...run, program } : run));
}

function lanesOf(random: Random): LanesOp {
  const lanes = times(2 + random.int(2), (k) => ({
    name: `lane ${k}`,
    turns: 2 + random.int(3),
    workMs: pick(random, [5, 50, 900, 3_000]),
  }));
  return { op: "lanes", lanes, restMs: chance(random, 0.5) ? 500 + random.int(9_000) : undefined };
}

/** Share of plans with a run that ends while an effect of it is in doubt. */
const inDoubtShare = 0.06;
const inDoubtFaults: readonly (readonly SimulatedFault[])[] = [["lost"], ["late"], ["vanished"], ["lost", "not_sent"]];

/**
 * An idempotent effect loses a response, and its run is cancelled, fails or completes without it during the back-off.
 * Drawn from a generator of its own, so that plans without such a run stay unchanged.
 */
export function withEndsInDoubt(seed: number | string, runs: readonly PlannedRun[]): readonly PlannedRun[] {
  const random = seededRandom(`ends in doubt ${seed}`);
  if (!chance(random, inDoubtShare)) return runs;
  const atMs = random.int(6_000);
  const args = { ...calmArgs(random), faults: pick(random, inDoubtFaults) };
  const effect: Op = { op: "effect", effect: pick(random, slowEffectNames), args, caught: chance(random, 0.5) };
  const endMs = 200 + random.int(8_000);
  const beside: readonly Op[] = [{ op: "sleep", ms: 2 * Math.floor(endMs / 2) }];
  const ends: Readonly<Record<string, readonly Op[]>> = {
    cancelled: [effect],
    failed: [{ op: "all", branches: [[effect], [...beside, { op: "fail" }]] }],
    completed: [{ op: "race", branches: [[effect], beside] }],
  };
  const cause = pick(random, ["cancelled", "cancelled", "failed", "completed"]);
  const run: PlannedRun = {
    id: "ends-in-doubt",
    workflow: "once",
    program: { ops: ends[cause]!, attempts: 1 },
    atMs,
    cancelAtMs: cause === "cancelled" ? atMs + endMs : undefined,
    usd: undefined,
    again: undefined,
  };
  return [...runs, run];
}

/** An effect with a key of its own and a fast upstream. */
export function calmArgs(random: Random): EffectArgs {
  const drawn = argsOf(random);
  return { ...drawn, businessKey: drawn.id, faults: [], unresponsive: false, travelMs: 5, answerMs: 50 };
}

/** Three generations; the youngest has an effect to compensate. */
function grandchildOf(random: Random): Op {
  const effect = compensableOf(random);
  return { op: "child", ops: [{ op: "child", ops: [effect], awaited: true }, { op: "fail" }], awaited: true };
}

/** An effect that succeeds and is compensated if its run fails. */
export function compensableOf(random: Random): Op {
  const effect = pick(random, ["compensable.inline", "compensable.outbox", "compensable.idempotent"]);
  return { op: "effect", effect, args: { ...argsOf(random), faults: [] }, caught: false };
}

export function opsOf(random: Random, count: number, depth: number): Op[] {
  return times(count, () => opOf(random, depth));
}

function opOf(random: Random, depth: number): Op {
  const kinds = [
    "effect",
    "effect",
    "effect",
    "effect",
    "effect",
    "step",
    "sample",
    "gate",
    "sleep",
    "spend",
    "put",
  ] as const;
  const nested = ["all", "race", "child", "child", "tidy", "tidy", "rush"] as const;
  const op = depth > 0 && chance(random, 0.25) ? pick(random, nested) : pick(random, kinds);
  switch (op) {
    case "step":
      return { op, fails: chance(random, 0.05) };
    case "effect":
      return { op, effect: pick(random, effectNames), args: argsOf(random), caught: chance(random, 0.6) };
    case "gate":
      return {
        op,
        name: pick(random, ["left", "right"]),
        ...(chance(random, 0.5) ? { timeoutMs: 500 + random.int(12_000) } : {}),
      };
    case "sleep":
      return { op, ms: chance(random, 0.1) ? 0 : random.int(12_000) };
    case "child":
      return { op, ops: opsOf(random, 1 + random.int(2), depth - 1), awaited: chance(random, 0.8) };
    case "tidy":
      return { op, ops: [{ op: "step", fails: chance(random, 0.3) }, ...opsOf(random, random.int(2), depth - 1)] };
    case "all":
    case "race":
      return { op, branches: times(2 + random.int(2), () => opsOf(random, 1 + random.int(2), depth - 1)) };
    case "rush": // three at once, together beyond the budget
      return { op: "all", branches: times(3, () => [{ op: "spend", usd: 4, cost: 2, ms: 500 + random.int(4_000) }]) };
    case "spend":
      return { op, usd: 1 + random.int(4), cost: random.int(3), ms: random.int(6_000) };
    case "put":
      return { op, key: pick(random, ["a", "b"]) };
    default:
      return { op: "sample" };
  }
}

function argsOf(random: Random): EffectArgs {
  const id = `act-${random.bits63().toString(36)}`;
  const bad = ["not_sent", "refused", "lost", "lost", "vanished", "vanished", "late", "twice", "twice", "ok"] as const;
  const some = <T>(share: number, from: readonly T[]): T[] =>
    chance(random, share) ? times(1 + random.int(3), () => pick(random, from)) : [];
  return {
    id,
    // Sometimes two effects share a business key: the second is refused.
    businessKey: chance(random, 0.4) ? "shared" : id,
    faults: some<SimulatedFault>(0.35, bad),
    compensateFaults: some<SimulatedFault>(0.25, ["not_sent", "lost", "vanished", "late", "ok"]),
    unresponsive: chance(random, 0.06),
    observations: some(0.3, ["inconclusive", "throws", "ok"] as const),
    travelMs: pick(random, [0, 5, 50, 900]),
    answerMs: pick(random, [0, 5, 50, 900, 5_000]),
  };
}

export function signalsOf(random: Random, run: PlannedRun): PlannedSignal[] {
  const signals: PlannedSignal[] = [];
  const gates = gatesIn(run.program.ops);
  for (let k = 0; k < gates.length; k++) {
    if (!chance(random, 0.6)) continue;
    const key = chance(random, 0.35) ? undefined : `signal ${k}`;
    const signal = { run: run.id, gate: gates[k]!, atMs: random.int(14_000), key };
    signals.push(signal);
    // Sent twice: its key identifies it.
    if (key !== undefined && chance(random, 0.3)) signals.push({ ...signal, atMs: signal.atMs + random.int(5_000) });
  }
  return signals;
}

function gatesIn(ops: readonly Op[]): string[] {
  return ops.flatMap((op) => {
    if (op.op === "gate") return [op.name];
    if (op.op === "all" || op.op === "race") return op.branches.flatMap(gatesIn);
    if (op.op === "tidy") return gatesIn(op.ops);
    return []; // the ids of children are not known here; their gates are answered after the heal
  });
}
