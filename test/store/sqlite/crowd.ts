import type { Clock } from "../../../src/base/clock.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { Courtesy } from "../../../src/store/sqlite/courtesy.ts";

export interface Crowd {
  /** Processes that write batches of 500 without a pause. */
  readonly floods: number;
  /** Pairs of processes: one starts a run, another one drives it, repeatedly. */
  readonly runs: number;
  readonly flushMs: number;
}

const itemMs = 0.07;
const batch = 500;
const lastsMs = 20_000;

/**
 * Many processes on one file, in virtual time: a lock without a queue, transactions that take time, timers that are a
 * little late. Measures how long the runs of the light processes take, and how much the floods write.
 */
export function playCrowd({ floods, runs, flushMs }: Crowd): { p50: number; p99: number; flooded: number } {
  const random = seededRandom(`${floods} ${runs} ${flushMs}`);
  let now = 0;
  const clock = { mono: () => now } as Clock;
  const due: { at: number; fn: () => void }[] = [];
  const later = (ms: number, fn: () => void): void => void due.push({ at: now + ms, fn });
  const timer = (ms: number, fn: () => void): void =>
    later(Math.max(1, Math.floor(ms)) - Math.log(1 - random.float()) / 2, fn);
  const about = (ms: number): number => ms * (0.7 + 0.6 * random.float());
  let locked = false;
  let version = 0;

  /** The committer's life cycle, with time in it. */
  const writer = (): ((items: number, done: () => void) => void) => {
    const courtesy = new Courtesy(clock, random);
    let seen: number | undefined;
    return (items, done) => {
      let left = items;
      let since: number | undefined;
      const flush = (): void => {
        const restMs = courtesy.restMs();
        if (restMs > 0) timer(restMs, flush);
        else if (locked) {
          since ??= now;
          timer(courtesy.busy(now - since), flush);
        } else commit();
      };
      const commit = (): void => {
        since = undefined;
        if (seen !== undefined && seen !== version) courtesy.seen();
        const some = Math.min(left, 1_000, Math.ceil(courtesy.workBoundMs() / itemMs));
        const workedMs = about(some * itemMs);
        const heldMs = workedMs + about(flushMs * (1 + some / batch));
        locked = true;
        later(heldMs, () => {
          locked = false;
          seen = ++version;
          courtesy.leave(workedMs, heldMs);
          left -= some;
          if (left > 0) later(0.1, flush);
          else done();
        });
      };
      flush();
    };
  };

  let flooded = 0;
  for (let k = 0; k < floods; k++) {
    const write = writer();
    const repeat = (): void =>
      write(batch, () => {
        flooded += batch;
        later(about(3), repeat);
      });
    later(20 * random.float(), repeat);
  }
  const taken: number[] = [];
  for (let k = 0; k < runs; k++) {
    const [caller, worker] = [writer(), writer()];
    const run = (): void => {
      const startedAt = now;
      const steps = (left: number): void => {
        if (left > 0) worker(1, () => later(0.2, () => steps(left - 1)));
        else later(30 * random.float(), end);
      };
      const end = (): void => {
        taken.push(now - startedAt);
        later(5, run);
      };
      caller(1, () => later(50 * random.float(), () => steps(6)));
    };
    later(20 * random.float(), run);
  }
  while (now < lastsMs) {
    let first = 0;
    for (let k = 1; k < due.length; k++) if (due[k]!.at < due[first]!.at) first = k;
    const [{ at, fn }] = due.splice(first, 1) as [{ at: number; fn: () => void }];
    now = at;
    fn();
  }
  const sorted = taken.sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), flooded };
}
