const settledPromise = Promise.resolve();

/**
 * Calls `fn` once every promise that is already settled has been seen by whoever awaits it: when the code that runs now
 * has come to rest. Not a turn of the event loop, which costs ten times as much: ticks run after microtasks, and the
 * microtask around it is needed because a tick that was asked for by a tick would run before them.
 */
export function afterMicrotasks(fn: () => void): void {
  void settledPromise.then(() => process.nextTick(fn));
}
