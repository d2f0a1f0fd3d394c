import { existsSync, globSync, renameSync, writeFileSync } from "node:fs";
import { systemClock } from "../../../src/base/clock.ts";
import type { Stretch } from "../judge.ts";
import type { Replica } from "../replicas.ts";
import { anyOf, type Deployment, type Fault, targets } from "../strike.ts";

export const clockKind = "clock set by an hour";

const places = [
  "/usr/lib/*/faketime/libfaketimeMT.so.1",
  "/usr/lib/faketime/libfaketimeMT.so.1",
  "/usr/lib64/faketime/libfaketimeMT.so.1",
  "/usr/local/lib/faketime/libfaketimeMT.so.1",
];

/** Where libfaketime is; undefined: it is not installed. */
export const findFaketime = (): string | undefined => places.flatMap((place) => globSync(place)).find(existsSync);

const hourMs = 3_600_000;
const offsets = [-hourMs, 0, hourMs];
/** libfaketime looks at its file once a second. */
const seenMs = 1_100;

/** The environment of a process whose wall clock is set by a file. Its monotonic clock is the machine's. */
export function clockEnv(library: string, file: string): Record<string, string> {
  setClock(file, 0);
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    DONT_FAKE_MONOTONIC: "1", // its name in older versions
    FAKETIME_CACHE_DURATION: "1",
  };
}

/** By rename: nobody reads half a number. */
function setClock(file: string, offsetMs: number): void {
  writeFileSync(`${file}.draft`, `${offsetMs < 0 ? "-" : "+"}${Math.abs(offsetMs) / 1_000}\n`);
  renameSync(`${file}.draft`, file);
}

export interface Clocks {
  /** One for each replica: on a database the clocks of its clients do not matter. Else the machine's one clock. */
  readonly of: (replica: Replica) => string;
  readonly shared: boolean;
  /**
   * Whenever the machine's clock was being set, by the world's clock. Forward, timers by the wall clock are rightly early.
   * Back, one process already lives an hour earlier than another, which no machine knows: what the one sets is long due
   * for the other.
   */
  readonly unsteady: Stretch[];
}

/** Sets the wall clock forward and back while processes work. */
export function clockFault(deployment: Deployment, { of, shared, unsteady }: Clocks): Fault {
  const { random, strikes, replicas } = deployment;
  const set = new Map<string, number>();
  const step = (file: string, to: number): number => {
    const from = set.get(file) ?? 0;
    set.set(file, to);
    if (shared && to !== from) {
      const stretch = { from: systemClock.wall(), until: Number.POSITIVE_INFINITY };
      unsteady.push(stretch);
      void noticed(file).then(() => {
        stretch.until = systemClock.wall() + seenMs;
      });
    }
    setClock(file, to);
    return to - from;
  };
  /** libfaketime looks once a second, each process at its own moment, and one that is stopped when it is awake again. */
  const noticed = async (file: string): Promise<void> => {
    for (const replica of replicas) {
      for (;;) {
        await systemClock.sleep(500);
        const skew = await skewOf(replica);
        const knows = skew !== undefined && Math.abs(skew - (set.get(file) ?? 0)) < hourMs / 2;
        if (knows || !(replica.up || replica.paused)) break; // who starts anew knows at once
      }
    }
  };
  return {
    kind: clockKind,
    counts: "the clock of a process that held leases differed by more than half an hour from before",
    weight: 2,
    first: 2,
    async play() {
      const replica = anyOf(targets(deployment), random);
      if (replica === undefined) return;
      const worker = replica.label;
      const file = of(replica);
      const to = anyOf(
        offsets.filter((offset) => offset !== (set.get(file) ?? 0)),
        random,
      )!;
      const leases = Object.keys(await deployment.leasesOf(worker));
      const before = await skewOf(replica);
      const by = step(file, to);
      await systemClock.sleep(seenMs);
      const after = await skewOf(replica);
      const seen = before !== undefined && after !== undefined && Math.abs(after - before) > hourMs / 2;
      strikes.push({
        kind: clockKind,
        bitten: seen && leases.length > 0,
        hit: [
          shared ? "every process of the machine" : "one replica",
          ...(leases.length > 0 ? ["holding leases"] : []),
        ],
        outcome: seen ? [`${by > 0 ? "+" : "−"}${Math.abs(by) / hourMs} h`] : ["its process was gone or stopped"],
      });
    },
    /** What was due an hour ahead is due at last. */
    async calm() {
      for (const file of new Set(replicas.map(of))) step(file, shared ? hourMs : 0);
      await systemClock.sleep(seenMs);
    },
  };
}

/** By how much its wall clock differs from ours. */
async function skewOf(replica: Replica): Promise<number | undefined> {
  const wall = await replica.clock(1_000);
  return wall === undefined ? undefined : wall - systemClock.wall();
}
