import { readFileSync } from "node:fs";
import { uptime } from "node:os";

/**
 * Time, as everything above this folder sees it. A seam: production uses {@link systemClock}, simulations a virtual one.
 *
 * `mono` never jumps but may stand still while the machine sleeps; `wall` never stands still but may jump. Whoever must
 * be careful (a lease holder) asks both and believes the worse.
 */
export interface Clock {
  /** Milliseconds of CLOCK_MONOTONIC: shared by all processes of one boot of one machine. */
  mono(): number;
  /** Milliseconds since 1970. */
  wall(): number;
  /** Milliseconds since the machine's boot, also while it slept. Absent: as `mono`, of a machine that never sleeps. */
  up?(): number;
  /** Names the boot to which `mono` belongs. */
  boot(): string;
  /** Calls `fn` once after `ms`; the returned function cancels. Pending timers do not keep a process alive. */
  after(ms: number, fn: () => void): () => void;
  /** Calls `fn` once the current turn of the event loop is over. */
  immediate(fn: () => void): void;
  /** Resolves after `ms`, or at once when `signal` aborts. Keeps the process alive: somebody is waiting. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

let bootId: string | undefined;

function readBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Elsewhere the moment of boot, to ten seconds, is the best name there is. A wrong guess only ends terms early.
    return `boot-${Math.round((Date.now() / 1000 - uptime()) / 10)}`;
  }
}

/** How long the machine has slept since its boot, and when we looked. */
const slept = { ms: 0, seen: Number.NEGATIVE_INFINITY };

/** Less than this is not sleep but the ten milliseconds to which the system tells its time; two processes must agree. */
const minSleepMs = 500;

function detectSleep(mono: number): void {
  slept.seen = mono;
  const ms = Math.round(uptime() * 1_000 - mono);
  // A container may tell the time since its own beginning: that is less than mono, and says nothing.
  if (ms >= minSleepMs && Math.abs(ms - slept.ms) >= minSleepMs) slept.ms = ms;
}

export const systemClock: Clock = {
  // CLOCK_MONOTONIC itself, which the processes of one boot share: performance.now() counts from an origin of its own.
  mono: () => {
    const [seconds, nanos] = process.hrtime(); // not the bigint form: this is asked several times for each step
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
