import type { Random } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";

/** What happens to a process, and where: at its nth boundary of a kind, before or after it. */
export interface Fault {
  readonly replica: number;
  /** `wire`: between it and the server, for one that is connected to one. `ask`: the same, of what clients asked it for. */
  readonly at: "append" | "claim" | "renew" | "intake" | "read" | "act" | "wire" | "ask";
  readonly n: number;
  readonly edge: "before" | "after";
  /**
   *   crash, pause   of the whole process
   *   fail           the request, or its answer, is lost
   *   hang           it is on its way for a long time, and then carried out or heard of
   *   busy           it is refused for now
   *   double         it arrives, and once more later
   *   late           it is lost for its sender, and arrives later nevertheless
   *   gateway        somebody on the way answers in the server's place
   */
  readonly strike: "crash" | "pause" | "fail" | "hang" | "busy" | "double" | "late" | "gateway";
  /** Until it goes on, starts anew or arrives; undefined: dead for ever. */
  readonly forMs: number | undefined;
}

/** How wrong a process's wall clock is. */
export interface WrongClock {
  readonly offMs: number;
  /** Milliseconds gained, or lost, in each second. */
  readonly drift: number;
  readonly steps: readonly { readonly atMs: number; readonly byMs: number }[];
}

/** The store loses what was committed between two moments, is away for a while, and is then declared restored. */
export interface Rewind {
  readonly snapshotAtMs: number;
  readonly atMs: number;
  readonly awayMs: number;
}

const reach = { append: 24, claim: 4, renew: 3, intake: 4, read: 30, act: 5, wire: 60, ask: 3 } as const;

/** What a fault must fit to. */
export interface Shape {
  readonly replicas: number;
  readonly remote: readonly boolean[];
  readonly ttlMs: number;
  readonly singleton: object | undefined;
}

export function faultOf(random: Random, of: Shape): Fault {
  const { replicas, remote, ttlMs } = of;
  const replica = random.int(replicas);
  const at =
    remote[replica] === true && chance(random, 0.75)
      ? pick(random, ["wire", "wire", "ask"] as const)
      : of.singleton !== undefined && chance(random, 0.3)
        ? "renew"
        : pick(random, [
            "append",
            "append",
            "append",
            "act",
            "act",
            "claim",
            "claim",
            "renew",
            "intake",
            "read",
          ] as const);
  const strike =
    at === "act"
      ? pick(random, ["crash", "pause"] as const)
      : at === "wire" || at === "ask"
        ? pick(random, ["fail", "fail", "hang", "busy", "double", "late", "gateway"] as const)
        : pick(random, at === "append" ? inWriting : elsewhere);
  // Early ones first: a small world has few of anything.
  const n = 1 + Math.floor(reach[at] * random.float() ** 2);
  const edge = strike === "busy" || strike === "double" || strike === "late" ? "before" : pick(random, edges);
  return { replica, at, n, edge, strike, forMs: lengthOf(random, strike, ttlMs) };
}

const edges = ["before", "after"] as const;
const elsewhere = ["crash", "crash", "pause", "pause", "fail", "fail", "hang", "busy"] as const;
/** Whoever is stopped in the middle of writing, and is replaced meanwhile, is what fences are for. */
const inWriting = ["crash", "pause", "pause", "pause", "pause", "fail", "hang", "busy"] as const;

function lengthOf(random: Random, strike: Fault["strike"], ttlMs: number): number | undefined {
  if (strike === "crash") return chance(random, 0.2) ? undefined : random.int(ttlMs);
  // Most stops outlast the lease, and half of what hangs.
  if (strike === "pause") return Math.round(ttlMs * (0.6 + 1.5 * random.float()));
  if (strike === "hang") return Math.round(ttlMs * (0.3 + 1.5 * random.float()));
  return strike === "double" || strike === "late" ? random.int(ttlMs) : random.int(500);
}

const hourMs = 3_600_000;

export function clockOf(random: Random, lastsMs: number): WrongClock {
  const off = (): number => pick(random, [-1, 1]) * random.int(hourMs);
  return {
    offMs: chance(random, 0.5) ? off() : 0,
    drift: chance(random, 0.3) ? random.int(21) - 10 : 0,
    steps: times(random.int(3), () => ({ atMs: random.int(lastsMs), byMs: off() })),
  };
}

export const rightClock: WrongClock = { offMs: 0, drift: 0, steps: [] };

export function rewindOf(random: Random): Rewind {
  const snapshotAtMs = 500 + random.int(8_000);
  return { snapshotAtMs, atMs: snapshotAtMs + 200 + random.int(6_000), awayMs: random.int(4_000) };
}

/** A fault in words, for whoever has to find out why a seed failed. */
export function describeFault(fault: Fault): string {
  const { replica, at, n, edge, strike, forMs } = fault;
  const lasting = strike === "fail" || strike === "busy" || strike === "gateway";
  const how = lasting ? "" : forMs === undefined ? " for ever" : ` for ${forMs} ms`;
  return `replica ${replica}: ${strike}${how} ${edge} ${at} #${n}`;
}
