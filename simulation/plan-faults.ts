import type { Random } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";

/** What happens to a process at its nth boundary of a kind, before or after it. */
export interface Fault {
  readonly replica: number;
  /**
   * `dispatch`: an append that authorises an effect. `commit`: of a transactional step. Both count as appends, too.
   * `chunks`: a write to streams. `wire`: between a connected replica and the server. `client`: the same, for requests that a client made.
   */
  readonly at:
    | "append"
    | "dispatch"
    | "commit"
    | "claim"
    | "renew"
    | "intake"
    | "read"
    | "effect"
    | "chunks"
    | "wire"
    | "client";
  readonly n: number;
  readonly edge: "before" | "after";
  /**
   *   crash, pause   of the whole process
   *   fail           the request or its response is lost
   *   hang           the request or its response is delayed for a long time
   *   busy           the request is refused for now
   *   double         the request arrives, and once more later
   *   late           the sender gets an error, and the request arrives later
   *   gateway        a gateway answers in the server's place
   */
  readonly kind: "crash" | "pause" | "fail" | "hang" | "busy" | "double" | "late" | "gateway";
  /** Until it resumes, restarts or arrives; undefined: it never restarts. */
  readonly forMs: number | undefined;
}

/** The error of a process's wall clock. */
export interface WrongClock {
  readonly offMs: number;
  /** Milliseconds gained or lost per second. */
  readonly drift: number;
  readonly steps: readonly { readonly atMs: number; readonly byMs: number }[];
}

/**
 * The store loses what was committed between two moments, is unreachable for a while, and is then declared restored.
 */
export interface Rewind {
  readonly snapshotAtMs: number;
  readonly atMs: number;
  readonly awayMs: number;
}

const reach = { append: 24, claim: 4, renew: 3, intake: 4, read: 30, effect: 5, wire: 60, client: 3 } as const;

/** The parts of a plan that a fault depends on. */
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
      ? pick(random, ["wire", "wire", "client"] as const)
      : of.singleton !== undefined && chance(random, 0.3)
        ? "renew"
        : pick(random, [
            "append",
            "append",
            "append",
            "effect",
            "effect",
            "claim",
            "claim",
            "renew",
            "intake",
            "read",
          ] as const);
  const kind =
    at === "effect"
      ? pick(random, ["crash", "pause"] as const)
      : at === "wire" || at === "client"
        ? pick(random, ["fail", "fail", "hang", "busy", "double", "late", "gateway"] as const)
        : pick(random, at === "append" ? inWriting : elsewhere);
  // Early occurrences are more likely: a small world has few of anything.
  const n = 1 + Math.floor(reach[at] * random.float() ** 2);
  const edge = kind === "busy" || kind === "double" || kind === "late" ? "before" : pick(random, edges);
  return { replica, at, n, edge, kind, forMs: lengthOf(random, kind, ttlMs) };
}

const edges = ["before", "after"] as const;
const elsewhere = ["crash", "crash", "pause", "pause", "fail", "fail", "hang", "busy"] as const;
/** Fences exist for processes that are paused while writing and replaced meanwhile. */
const inWriting = ["crash", "pause", "pause", "pause", "pause", "fail", "hang", "busy"] as const;

function lengthOf(random: Random, kind: Fault["kind"], ttlMs: number): number | undefined {
  if (kind === "crash") return chance(random, 0.2) ? undefined : random.int(ttlMs);
  // Most pauses outlast the lease, and half of the hangs.
  if (kind === "pause") return Math.round(ttlMs * (0.6 + 1.5 * random.float()));
  if (kind === "hang") return Math.round(ttlMs * (0.3 + 1.5 * random.float()));
  return kind === "double" || kind === "late" ? random.int(ttlMs) : random.int(500);
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

/** Describes a fault, to explain a failure. */
export function describeFault(fault: Fault): string {
  const { replica, at, n, edge, kind, forMs } = fault;
  const lasting = kind === "fail" || kind === "busy" || kind === "gateway";
  const how = lasting ? "" : forMs === undefined ? " without restart" : ` for ${forMs} ms`;
  return `replica ${replica}: ${kind}${how} ${edge} ${at} #${n}`;
}
