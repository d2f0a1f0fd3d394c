import type { Clock } from "../../base/clock.ts";

/** Other processes on the same file cannot notify us; a look at the file's version counter costs microseconds. */
export interface ChangeWatch {
  readonly clock: Clock;
  /** Changes when another connection has committed. */
  readonly version: () => unknown;
  readonly onCommit: () => void;
  readonly everyMs: number;
  readonly state: { watchers: number; cancel?: () => void; seen?: unknown };
}

/** Looks as long as somebody listens. Returns the function that stops listening. */
export function watchOtherProcesses(neighbours: ChangeWatch): () => void {
  const { state } = neighbours;
  if (state.watchers++ === 0) {
    state.seen = neighbours.version();
    look(neighbours);
  }
  let left = false;
  return () => {
    if (left) return;
    left = true;
    if (--state.watchers === 0) state.cancel?.();
  };
}

function look(neighbours: ChangeWatch): void {
  const { state, clock } = neighbours;
  state.cancel = clock.after(neighbours.everyMs, () => {
    if (state.watchers === 0) return;
    const version = neighbours.version();
    if (version !== state.seen) {
      state.seen = version;
      neighbours.onCommit();
    }
    look(neighbours);
  });
}
