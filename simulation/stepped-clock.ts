import type { Clock } from "../src/base/clock.ts";
import { startWallMs, type VirtualTime } from "../testkit/kit/virtual-time.ts";
import { dayMs, type WallStep } from "./plan-visitors.ts";

/** The store's clock: monotonic time is steady, and wall time jumps at the step. */
export function steppedClock(time: VirtualTime, step: WallStep | undefined): Clock {
  if (step === undefined) return time;
  return {
    mono: () => time.mono(),
    wall: () => time.wall() + (time.now >= step.atMs ? step.byMs : 0),
    boot: () => time.boot(),
    after: (ms, fn) => time.after(ms, fn),
    immediate: (fn) => time.immediate(fn),
    sleep: (ms, signal) => time.sleep(ms, signal),
  };
}

/** Converts a time of the store to what a clock without the step would show. */
export function unstepped(step: WallStep | undefined): (ms: number) => number {
  if (step === undefined) return (ms) => ms;
  return (ms) => (Math.abs(ms - startWallMs - step.byMs) < dayMs / 2 ? ms - step.byMs : ms);
}
