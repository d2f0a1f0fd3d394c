import { TapeError } from "../model/errors.ts";
import type { QueueReadOps, QueueWriteOps } from "../store/contract/store.ts";

/** The server has no routes for queues. */
const refuse = async (): Promise<never> => {
  throw new TapeError("TAPE_FORBIDDEN", "this server does not serve queues: upgrade it, or open its store directly");
};

export const remoteQueueWrites = (): QueueWriteOps => ({
  putQueue: refuse,
  changeQueue: refuse,
  resetQueue: refuse,
  pauseQueue: refuse,
});

export const remoteQueueReads = (): QueueReadOps => ({
  queues: async () => [],
  queuePartitions: refuse,
  queueSlots: refuse,
  queuePosition: async () => undefined,
});
