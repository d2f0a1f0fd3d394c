import type { Clock } from "../src/base/clock.ts";
import { beginning, type VirtualTime } from "../testkit/kit/virtual-time.ts";
import { dayMs, type WallStep } from "./plan-visitors.ts";

/** The clock that the store sees: steady in what counts from the boot, and set in what people read. */
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

/** A time that the store has told, as a clock has it that was never set. */
export function unstepped(step: WallStep | undefined): (ms: number) => number {
  if (step === undefined) return (ms) => ms;
  return (ms) => (Math.abs(ms - beginning - step.byMs) < dayMs / 2 ? ms - step.byMs : ms);
}
