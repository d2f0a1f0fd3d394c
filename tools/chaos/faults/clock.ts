import { existsSync, globSync, renameSync, writeFileSync } from "node:fs";
import { systemClock } from "../../../src/base/clock.ts";
import { anyOf, type Deployment, type Fault, targets } from "../fault.ts";
import type { ClockChange } from "../judge.ts";
import type { Replica } from "../replicas.ts";

export const clockKind = "clock set by an hour";

const places = [
  "/usr/lib/*/faketime/libfaketimeMT.so.1",
  "/usr/lib/faketime/libfaketimeMT.so.1",
  "/usr/lib64/faketime/libfaketimeMT.so.1",
  "/usr/local/lib/faketime/libfaketimeMT.so.1",
];

/** Path of libfaketime; undefined: it is not installed. */
export const findFaketime = (): string | undefined => places.flatMap((place) => globSync(place)).find(existsSync);

const hourMs = 3_600_000;
const offsets = [-hourMs, 0, hourMs];
/** libfaketime reads its file once a second. */
const noticeMs = 1_100;

/** Environment of a process whose wall clock is set through a file. Its monotonic clock is the machine's. */
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

/** By rename, so that no process reads half a number. */
function setClock(file: string, offsetMs: number): void {
  writeFileSync(`${file}.draft`, `${offsetMs < 0 ? "-" : "+"}${Math.abs(offsetMs) / 1_000}\n`);
  renameSync(`${file}.draft`, file);
}

export interface Clocks {
  /** File of a replica's clock. On PostgreSQL every replica has its own, otherwise all share the machine's. */
  readonly of: (replica: Replica) => string;
  readonly shared: boolean;
  /**
   * Periods in which the machine's clock was being set, by the world's clock. Forward, timers by the wall clock are rightly
   * early. Back, one process is already an hour behind another, which no real machine does: a timer that the one sets is
   * long due for the other.
   */
  readonly clockChanges: ClockChange[];
}

/** Sets the wall clock forward and back while processes work. */
export function clockFault(deployment: Deployment, { of, shared, clockChanges }: Clocks): Fault {
  const { random, injections, replicas } = deployment;
  const set = new Map<string, number>();
  const step = (file: string, to: number): number => {
    const from = set.get(file) ?? 0;
    set.set(file, to);
    if (shared && to !== from) {
      const change = { from: systemClock.wall(), until: Number.POSITIVE_INFINITY };
      clockChanges.push(change);
      void noticed(file).then(() => {
        change.until = systemClock.wall() + noticeMs;
      });
    }
    setClock(file, to);
    return to - from;
  };
  /** Each process reads the file at its own moment, once a second; a stopped one reads it after it was woken. */
  const noticed = async (file: string): Promise<void> => {
    for (const replica of replicas) {
      for (;;) {
        await systemClock.sleep(500);
        const skew = await skewOf(replica);
        const hasNoticed = skew !== undefined && Math.abs(skew - (set.get(file) ?? 0)) < hourMs / 2;
        if (hasNoticed || !(replica.up || replica.paused)) break; // a restarted process reads it at once
      }
    }
  };
  return {
    kind: clockKind,
    effectiveWhen: "the clock of a process that held leases moved by more than half an hour",
    weight: 2,
    initial: 2,
    async inject() {
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
      await systemClock.sleep(noticeMs);
      const after = await skewOf(replica);
      const seen = before !== undefined && after !== undefined && Math.abs(after - before) > hourMs / 2;
      injections.push({
        kind: clockKind,
        effective: seen && leases.length > 0,
        hit: [
          shared ? "every process of the machine" : "one replica",
          ...(leases.length > 0 ? ["holding leases"] : []),
        ],
        outcome: seen ? [`${by > 0 ? "+" : "−"}${Math.abs(by) / hourMs} h`] : ["its process had ended or was stopped"],
      });
    },
    /** On a shared clock an hour forward, so that timers set while it was ahead fall due. */
    async cleanUp() {
      for (const file of new Set(replicas.map(of))) step(file, shared ? hourMs : 0);
      await systemClock.sleep(noticeMs);
    },
  };
}

/** Difference between its wall clock and this process's. */
async function skewOf(replica: Replica): Promise<number | undefined> {
  const wall = await replica.clock(1_000);
  return wall === undefined ? undefined : wall - systemClock.wall();
}
