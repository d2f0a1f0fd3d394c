import { type Random, seededRandom } from "../../base/random.ts";
import { type ActArgs, effectNames, type SimulatedTrouble } from "./effects.ts";
import type { Op, Program } from "./program.ts";

/** What happens to a process, and where: at its nth boundary of a kind, before or after it. */
export interface Fault {
  readonly replica: number;
  readonly at: "append" | "claim" | "intake" | "read" | "act";
  readonly n: number;
  readonly edge: "before" | "after";
  readonly strike: "crash" | "pause" | "fail";
  /** Until it goes on, or starts anew; undefined: dead for ever. */
  readonly forMs: number | undefined;
}

export interface PlannedRun {
  readonly id: string;
  readonly workflow: "once" | "thrice";
  readonly program: Program;
  readonly atMs: number;
  readonly cancelAtMs: number | undefined;
  readonly usd: number | undefined;
}

export interface PlannedSignal {
  readonly run: string;
  readonly gate: string;
  readonly atMs: number;
  readonly key: string;
}

/** Everything that a seed decides in advance. */
export interface Plan {
  readonly seed: number | string;
  readonly replicas: number;
  readonly ttlMs: number;
  /** Requests to the store and answers travel up to so long. */
  readonly travelMs: number;
  /** The share of hints that get lost. */
  readonly deafness: number;
  readonly runs: readonly PlannedRun[];
  readonly signals: readonly PlannedSignal[];
  readonly faults: readonly Fault[];
  /** From here on nothing goes wrong any more. */
  readonly healAtMs: number;
  /** false: the dead stay dead and the stopped stopped, and it is cut off at some moment: only safety is judged. */
  readonly heals: boolean;
  /** Whether somebody looks after what only a person can settle. */
  readonly person: boolean;
}

export function planOf(seed: number | string): Plan {
  const random = seededRandom(`plan ${seed}`);
  const replicas = 1 + random.int(5);
  const ttlMs = 12_000 + random.int(3) * 6_000;
  const runs = Array.from({ length: 1 + random.int(4) }, (_, k) => runOf(random, `run-${k}`));
  const count = random.int(8) === 0 ? 0 : 1 + random.int(6);
  return {
    seed,
    replicas,
    ttlMs,
    travelMs: pick(random, [0, 2, 40, 400]),
    deafness: pick(random, [0, 0, 0.3, 1]),
    runs,
    signals: runs.flatMap((run) => signalsOf(random, run)),
    faults: Array.from({ length: count }, () => faultOf(random, replicas, ttlMs)),
    healAtMs: 20_000 + random.int(60_000),
    heals: !chance(random, 0.12),
    person: chance(random, 0.75),
  };
}

const pick = <T>(random: Random, from: readonly T[]): T => from[random.int(from.length)]!;
const chance = (random: Random, share: number): boolean => random.float() < share;

const reach = { append: 24, claim: 4, intake: 4, read: 30, act: 5 } as const;

function faultOf(random: Random, replicas: number, ttlMs: number): Fault {
  const at = pick(random, ["append", "append", "append", "act", "act", "claim", "intake", "read"] as const);
  const strike =
    at === "act"
      ? pick(random, ["crash", "pause"] as const)
      : pick(random, ["crash", "pause", "fail", "fail"] as const);
  const forMs =
    strike === "pause"
      ? Math.round(ttlMs * (0.3 + 2 * random.float()))
      : chance(random, 0.2)
        ? undefined
        : random.int(ttlMs);
  const edge = pick(random, ["before", "after"] as const);
  return { replica: random.int(replicas), at, n: 1 + random.int(reach[at]), edge, strike, forMs };
}

function runOf(random: Random, id: string): PlannedRun {
  const retried = chance(random, 0.15);
  const ops = opsOf(random, id, 1 + random.int(5), 2);
  return {
    id,
    workflow: retried ? "thrice" : "once",
    program: { ops: chance(random, 0.2) ? [...ops, { op: "fail" }] : ops, attempts: retried ? 3 : 1 },
    atMs: random.int(5_000),
    cancelAtMs: chance(random, 0.2) ? random.int(30_000) : undefined,
    usd: chance(random, 0.8) ? 10 : undefined,
  };
}

function opsOf(random: Random, run: string, count: number, depth: number): Op[] {
  return Array.from({ length: count }, () => opOf(random, run, depth));
}

function opOf(random: Random, run: string, depth: number): Op {
  const kinds = ["act", "act", "act", "act", "act", "step", "sample", "gate", "sleep", "spend", "put"] as const;
  const nested = ["all", "race", "child", "child", "tidy"] as const;
  const op = depth > 0 && chance(random, 0.25) ? pick(random, nested) : pick(random, kinds);
  switch (op) {
    case "step":
      return { op, fails: chance(random, 0.05) };
    case "act":
      return { op, effect: pick(random, effectNames), args: argsOf(random), caught: chance(random, 0.6) };
    case "gate":
      return {
        op,
        name: pick(random, ["left", "right"]),
        ...(chance(random, 0.5) ? { timeoutMs: 500 + random.int(20_000) } : {}),
      };
    case "sleep":
      return { op, ms: chance(random, 0.1) ? 0 : random.int(20_000) };
    case "child":
      return { op, ops: opsOf(random, run, 1 + random.int(2), depth - 1), awaited: chance(random, 0.8) };
    case "tidy":
      return { op, ops: [{ op: "step", fails: chance(random, 0.3) }, ...opsOf(random, run, random.int(2), depth - 1)] };
    case "all":
    case "race": {
      const branches = Array.from({ length: 2 + random.int(2) }, () =>
        opsOf(random, run, 1 + random.int(2), depth - 1),
      );
      return { op, branches };
    }
    case "spend":
      return { op, usd: 1 + random.int(4), cost: random.int(3), ms: random.int(8_000) };
    case "put":
      return { op, key: pick(random, ["a", "b"]) };
    default:
      return { op: "sample" };
  }
}

function argsOf(random: Random): ActArgs {
  const id = `act-${random.bits63().toString(36)}`;
  const bad = ["not_sent", "refused", "lost", "lost", "vanished", "late", "twice", "ok"] as const;
  const some = <T>(share: number, from: readonly T[]): T[] =>
    chance(random, share) ? Array.from({ length: 1 + random.int(3) }, () => pick(random, from)) : [];
  return {
    id,
    // Now and then two acts mean the same thing: the second asker is refused.
    businessKey: chance(random, 0.3) ? "shared" : id,
    troubles: some<SimulatedTrouble>(0.35, bad),
    undoTroubles: some<SimulatedTrouble>(0.25, ["not_sent", "lost", "vanished", "late", "ok"]),
    stubborn: chance(random, 0.04),
    looks: some(0.3, ["inconclusive", "throws", "ok"] as const),
    travelMs: pick(random, [0, 5, 50, 900]),
    answerMs: pick(random, [0, 5, 50, 900, 5_000]),
  };
}

function signalsOf(random: Random, run: PlannedRun): PlannedSignal[] {
  const signals: PlannedSignal[] = [];
  const gates = gatesIn(run.program.ops);
  for (let k = 0; k < gates.length; k++) {
    if (!chance(random, 0.6)) continue;
    const signal = { run: run.id, gate: gates[k]!, atMs: random.int(25_000), key: `signal ${k}` };
    signals.push(signal);
    if (chance(random, 0.3)) signals.push({ ...signal, atMs: signal.atMs + random.int(5_000) }); // sent twice
  }
  return signals;
}

function gatesIn(ops: readonly Op[]): string[] {
  return ops.flatMap((op) => {
    if (op.op === "gate") return [op.name];
    if (op.op === "all" || op.op === "race") return op.branches.flatMap(gatesIn);
    if (op.op === "tidy") return gatesIn(op.ops);
    return []; // children have ids that only the run knows; they are answered when all is healed
  });
}

/** A plan in words, for whoever has to find out why it failed. */
export function describeFault(fault: Fault): string {
  const { replica, at, n, edge, strike, forMs } = fault;
  const how = strike === "fail" ? "" : forMs === undefined ? " for ever" : ` for ${forMs} ms`;
  return `replica ${replica}: ${strike}${how} ${edge} ${at} #${n}`;
}
