import type { QueryClient } from "@tanstack/react-query";
import { ApiError, request } from "./api.ts";

/** Hints come in bursts: one refetch serves all of them. */
const burstMs = 200;
/** The pause after a refetch is this multiple of its duration, so that an open page is no load on a large store. */
const pauseFactor = 5;
const maxPauseMs = 10_000;
const reopenMs = 2_000;

/**
 * Follows the store's wake hints and refetches every live query. Hints are lossy, so each query also refetches on an
 * interval of its own.
 */
export function followStore(client: QueryClient, signal: AbortSignal): void {
  let state: "idle" | "planned" | "fetching" = "idle";
  let missed = false;
  let notBefore = 0;
  const onHint = (): void => {
    if (state === "fetching") missed = true;
    if (state !== "idle") return;
    state = "planned";
    setTimeout(() => void refetch(), Math.max(burstMs, notBefore - performance.now()));
  };
  const refetch = async (): Promise<void> => {
    state = "fetching";
    const startedAt = performance.now();
    await client.invalidateQueries({ predicate: ({ meta }) => meta?.live !== false });
    const now = performance.now();
    notBefore = now + Math.min(maxPauseMs, pauseFactor * (now - startedAt));
    state = "idle";
    if (!missed) return;
    missed = false;
    onHint();
  };
  const readHints = async (): Promise<void> => {
    const { body } = await request("store.wakeHints", { signal });
    const reader = body!.getReader();
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      // A single line end is a heartbeat: the stream is alive, nothing changed.
      if (chunk.value.length > 1) onHint();
    }
  };
  const keepReading = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await readHints();
      } catch (error) {
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return;
      }
      if (signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, reopenMs));
      onHint();
    }
  };
  void keepReading();
}
