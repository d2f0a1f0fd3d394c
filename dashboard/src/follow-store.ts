import type { QueryClient } from "@tanstack/react-query";
import { ApiError, request } from "./api.ts";

/** Hints come in bursts: one look serves all of them. */
const gatherMs = 200;
/** The next look comes no sooner than so many times what the last one took: an open page is no load on a large store. */
const restTimes = 5;
const longestRestMs = 10_000;
const reopenMs = 2_000;

/**
 * Follows the store's hints and has everything in sight asked for again. Hints are lossy; each query looks by itself
 * every few seconds too.
 */
export function followStore(client: QueryClient, signal: AbortSignal): void {
  let state: "idle" | "planned" | "looking" = "idle";
  let missed = false;
  let notBefore = 0;
  const look = (): void => {
    if (state === "looking") missed = true;
    if (state !== "idle") return;
    state = "planned";
    setTimeout(() => void lookNow(), Math.max(gatherMs, notBefore - performance.now()));
  };
  const lookNow = async (): Promise<void> => {
    state = "looking";
    const began = performance.now();
    await client.invalidateQueries({ predicate: ({ meta }) => meta?.settled !== true });
    const now = performance.now();
    notBefore = now + Math.min(longestRestMs, restTimes * (now - began));
    state = "idle";
    if (!missed) return;
    missed = false;
    look();
  };
  const listen = async (): Promise<void> => {
    const { body } = await request("store.wakeHints", { signal });
    const reader = body!.getReader();
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      // A single line end is a heartbeat: the stream lives, nothing happened.
      if (chunk.value.length > 1) look();
    }
  };
  const keep = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await listen();
      } catch (error) {
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return;
      }
      if (signal.aborted) return;
      await new Promise((done) => setTimeout(done, reopenMs));
      look();
    }
  };
  void keep();
}
