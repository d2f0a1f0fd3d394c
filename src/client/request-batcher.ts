import { Batcher, Channels } from "../base/batcher.ts";
import type { Clock } from "../base/clock.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";

/** One item of a shared request, as the text that goes over the wire. */
export interface BatchItem {
  readonly text: string;
  /** Only one item of a journal is under way at a time: the next one needs its predecessor in the store. */
  readonly journal?: number;
}

export type RequestBatcher<Result> = Batcher<BatchItem, Result>;

export interface RequestBatcherOptions<Result> {
  /** A result for each text, in order. */
  readonly send: (texts: readonly string[]) => Promise<readonly Result[]>;
  readonly clock: Clock;
  readonly limits: Limits;
  /** Requests under way at once. */
  readonly maxRequests: number;
}

/** 1 MiB is far below what a server takes; only one large item exceeds it. */
const batch = { maxItems: 256, maxBytes: 1024 * 1024, minShare: 32 };

/** Errors that one bad item causes for the whole request. Each item is then sent alone, and only the bad one is refused. */
const perItemErrors = ["TAPE_BAD_INPUT", "TAPE_TOO_LARGE", "TAPE_NOT_ENCODABLE"] as const;

/** Items of many callers in one request: a remote driver shares requests as an embedded one shares commits. */
export function requestBatcher<Result>(options: RequestBatcherOptions<Result>): RequestBatcher<Result> {
  const { send, clock, limits, maxRequests } = options;
  return new Batcher<BatchItem, Result>({
    clock,
    pending: limits,
    batch,
    channels: new Channels(maxRequests),
    tenant: () => "", // a connection has one tenant
    key: ({ journal }) => journal,
    bytes: ({ text }) => text.length,
    together: async (items) => {
      try {
        return await send(items.map(({ text }) => text));
      } catch (error) {
        if (items.length > 1 && perItemErrors.some((code) => isTapeError(error, code))) return [];
        throw error;
      }
    },
    single: async ({ text }) => (await send([text]))[0]!,
    refusal: (reason, waiting) =>
      reason === "closed"
        ? new TapeError("TAPE_STORE_CLOSED", "this store handle is closed")
        : new TapeError("TAPE_OVERLOADED", `${waiting} writes wait to be sent`),
  });
}
