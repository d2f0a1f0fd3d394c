import { readFileSync } from "node:fs";
import { uptime } from "node:os";

/**
 * The seam through which all code above this folder reads time. Production uses {@link systemClock}, simulations a
 * virtual clock.
 *
 * `mono` never jumps, but may stop while the machine sleeps. `wall` never stops, but may jump. A lease holder reads both
 * and trusts the worse one.
 */
export interface Clock {
  /** Milliseconds of CLOCK_MONOTONIC, which all processes of one boot of a machine share. */
  mono(): number;
  /** Milliseconds since 1970. */
  wall(): number;
  /** Milliseconds since the machine booted, including sleep. Absent: equals `mono`, as on a machine that never sleeps. */
  up?(): number;
  /** Identifies the boot to which `mono` belongs. */
  boot(): string;
  /** Calls `fn` once after `ms`; the returned function cancels it. Pending timers do not keep the process alive. */
  after(ms: number, fn: () => void): () => void;
  /** Calls `fn` once the current turn of the event loop is over. */
  immediate(fn: () => void): void;
  /** Resolves after `ms`, or at once when `signal` aborts. Keeps the process alive, because a caller is waiting. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

let bootId: string | undefined;

function readBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // On other systems the time of boot, rounded to ten seconds, is the best identifier. A wrong guess only ends terms
    // early.
    return `boot-${Math.round((Date.now() / 1000 - uptime()) / 10)}`;
  }
}

/** How long the machine has slept since it booted, and when this was measured. */
const slept = { ms: 0, seen: Number.NEGATIVE_INFINITY };

/** Differences below this are not sleep but the system's clock resolution of 10 ms; two processes must agree. */
const minSleepMs = 500;

function detectSleep(mono: number): void {
  slept.seen = mono;
  const ms = Math.round(uptime() * 1_000 - mono);
  // A container may report the time since its own start. That is less than mono and means nothing here.
  if (ms >= minSleepMs && Math.abs(ms - slept.ms) >= minSleepMs) slept.ms = ms;
}

/**
 * The clock of the machine.
 *
 * @example
 * const startedMs = systemClock.mono();
 */
export const systemClock: Clock = {
  // CLOCK_MONOTONIC, which all processes of one boot share. performance.now() has an origin of its own per process.
  mono: () => {
    const [seconds, nanos] = process.hrtime(); // not the bigint form, which is slower: each step reads this several times
    return seconds * 1000 + nanos / 1e6;
  },
  wall: () => Date.now(),
  up: () => {
    const mono = systemClock.mono();
    if (mono - slept.seen > 1_000) detectSleep(mono);
    return mono + slept.ms;
  },
  boot: () => {
    bootId ??= readBootId();
    return bootId;
  },
  after(ms, fn) {
    const timer = setTimeout(fn, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  immediate: (fn) => {
    setImmediate(fn);
  },
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.max(0, ms));
      signal?.addEventListener("abort", done, { once: true });
    });
  },
};
