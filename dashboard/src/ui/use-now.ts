import { useSyncExternalStore } from "react";

/** Offset to the server's clock: ages must not depend on how the browser's clock is set. */
let offsetMs = 0;
let current = Math.floor(Date.now() / 1_000) * 1_000;
const listeners = new Set<() => void>();
let interval: ReturnType<typeof setInterval> | undefined;

export function setServerNow(now: number): void {
  offsetMs = now - Date.now();
}

export const serverNow = (): number => Date.now() + offsetMs;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  interval ??= setInterval(() => {
    current = serverNow();
    for (const notify of listeners) notify();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(interval);
    interval = undefined;
  };
}

/** The server's time, updated once a second. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => current);
