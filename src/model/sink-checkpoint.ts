import { TapeError } from "./errors.ts";

/** What a fan-out leaves about its work: the position that it has passed, and why it is paused. */
export interface SinkCheckpoint {
  /** Everything up to here is settled; null: the start of the feed. */
  readonly cursor: string | null;
  /** When the last record before it was written. */
  readonly at: number;
  /** The store's epoch when it was written: a higher one since means that the store was restored. */
  readonly epoch: number;
  readonly paused?: SinkPause;
}

/** Why a sink is paused, and by whom. */
export interface SinkPause {
  readonly by: string;
  readonly reason: string;
  readonly at: number;
}

export const checkpointText = ({ cursor, at, epoch, paused }: SinkCheckpoint): string =>
  JSON.stringify({ v: 1, cursor, at, epoch, ...(paused && { paused }) });

/** The checkpoint in a lease's text; undefined: there is none. Another holder's text is not skipped but an error. */
export function checkpointOf(text: string | undefined): SinkCheckpoint | undefined {
  if (text === undefined) return undefined;
  const read = readCheckpoint(text);
  if (read !== undefined) return read;
  const message = "the checkpoint of the sink cannot be read: rewind or forget the sink";
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "checkpoint" });
}

/** The same for lists: undefined also if it cannot be read. */
export function readCheckpoint(text: string | undefined): SinkCheckpoint | undefined {
  try {
    const { v, cursor, at, epoch, paused } = JSON.parse(text ?? "") as SinkCheckpoint & { v?: unknown };
    const good = v === 1 && (cursor === null || typeof cursor === "string") && Number.isSafeInteger(epoch);
    return good ? { cursor, at: Number(at), epoch, ...(paused && { paused }) } : undefined;
  } catch {
    return undefined;
  }
}
