import type { QueryClient } from "@tanstack/react-query";
import { ask, Refusal } from "./api.ts";

/** Hints come in bursts: one look serves all of them. */
const gatherMs = 200;
const reopenMs = 2_000;

/**
 * Follows the store's hints and has everything in sight asked for again. Hints are lossy; each query looks by itself
 * every few seconds too.
 */
export function followStore(client: QueryClient, signal: AbortSignal): void {
  let planned: ReturnType<typeof setTimeout> | undefined;
  const look = (): void => {
    if (planned !== undefined) return;
    planned = setTimeout(() => {
      planned = undefined;
      void client.invalidateQueries({ predicate: ({ meta }) => meta?.settled !== true });
    }, gatherMs);
  };
  const listen = async (): Promise<void> => {
    const { body } = await ask("store.wakes", { signal });
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
        if (error instanceof Refusal && (error.status === 401 || error.status === 403)) return;
      }
      if (signal.aborted) return;
      await new Promise((done) => setTimeout(done, reopenMs));
      look();
    }
  };
  void keep();
}
