import type { Clock } from "../../base/clock.ts";

/** Other processes cannot notify this one of their commits; checking the file's version counter costs microseconds. */
export interface ChangeWatch {
  readonly clock: Clock;
  /** Changes when another connection has committed. */
  readonly version: () => unknown;
  readonly onCommit: () => void;
  readonly everyMs: number;
  readonly state: { watchers: number; cancel?: () => void; seen?: unknown };
}

/** Checks the file while it has listeners. Returns the function that stops listening. */
export function watchOtherProcesses(watch: ChangeWatch): () => void {
  const { state } = watch;
  if (state.watchers++ === 0) {
    state.seen = watch.version();
    scheduleCheck(watch);
  }
  let left = false;
  return () => {
    if (left) return;
    left = true;
    if (--state.watchers === 0) state.cancel?.();
  };
}

function scheduleCheck(watch: ChangeWatch): void {
  const { state, clock } = watch;
  state.cancel = clock.after(watch.everyMs, () => {
    if (state.watchers === 0) return;
    const version = watch.version();
    if (version !== state.seen) {
      state.seen = version;
      watch.onCommit();
    }
    scheduleCheck(watch);
  });
}
