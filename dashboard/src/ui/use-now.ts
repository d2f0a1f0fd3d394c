import { useSyncExternalStore } from "react";

/** The server's clock as this page knows it: ages must not depend on how the person's own clock is set. */
let ahead = 0;
let shown = Math.floor(Date.now() / 1_000) * 1_000;
const listeners = new Set<() => void>();
let beat: ReturnType<typeof setInterval> | undefined;

export function setServerNow(now: number): void {
  ahead = now - Date.now();
}

export const serverNow = (): number => Date.now() + ahead;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  beat ??= setInterval(() => {
    shown = serverNow();
    for (const one of listeners) one();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(beat);
    beat = undefined;
  };
}

/** Once a second. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => shown);
