import { encode } from "../base/codec.ts";
import { recordVersion } from "./records.ts";
import type { JournalKind } from "./rows.ts";

/** Where a record is being written, and under which fence. */
export interface RecordContext {
  readonly journal: number;
  readonly kind: JournalKind;
  readonly token: bigint;
  readonly nonce: bigint;
  /** A fresh journal number, for a child or an item that the record opens. */
  allocate(): number;
  /** How many versions of a value are kept for watchers. */
  readonly keepVersions: number;
}

/**
 * Positions of one lane: a million each, so that a position names its lane and stays a number that people can read. The
 * workflow itself is lane 0.
 */
export const laneRoom = 1_000_000;
export const laneOf = (pos: number): number => Math.floor(pos / laneRoom);

/** The text of a record in the store: version first, so that an old reader can refuse before it understands. */
export function encodeBody(data: unknown): string {
  const text = encode(data);
  // Plain data is its own JSON: the version is set in front of it, without a copy of the data. An envelope is made anew.
  if (text.startsWith('{"$codec"') || text === "{}") return encode({ v: recordVersion, ...(data as object) });
  return `${versionText}${text.slice(1)}`;
}

const versionText = `{"v":${recordVersion},`;

/** A value of the user's as a column holds it. */
export const encodePayload = (value: unknown): string | null => (value === undefined ? null : encode(value));
