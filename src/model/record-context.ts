import { encode } from "../base/codec.ts";
import { recordVersion } from "./records.ts";
import type { JournalKind } from "./rows.ts";

/** The journal that a record is written to, and its fence. */
export interface RecordContext {
  readonly journal: number;
  readonly kind: JournalKind;
  readonly token: bigint;
  readonly nonce: bigint;
  /** The run has a queue, starts later, or has a unique key: its records may move it in its queue. */
  readonly queued: boolean;
  /** Allocates a journal number for a child or an item that the record opens. */
  allocate(): number;
  /** The number of versions of a value kept for watchers. */
  readonly keepVersions: number;
  /** The number of names that a run may publish. */
  readonly maxNames: number;
  /** The number of units that the runs of one tree may spend. */
  readonly maxUnits: number;
  /** The number of labels that a run may have. */
  readonly maxLabels: number;
}

/**
 * The number of positions in one lane. With a million a position identifies its lane and stays readable. The workflow
 * itself is lane 0.
 */
export const laneRoom = 1_000_000;
export const laneOf = (pos: number): number => Math.floor(pos / laneRoom);

/** The text of a record in the store. The version comes first, so that an old reader can refuse a newer record. */
export function encodeBody(data: unknown): string {
  const text = encode(data);
  // Plain data is its own JSON: the version is prepended without copying the data. An envelope is encoded again.
  if (text.startsWith('{"$codec"') || text === "{}") return encode({ v: recordVersion, ...(data as object) });
  return `${versionText}${text.slice(1)}`;
}

const versionText = `{"v":${recordVersion},`;

/** A user's value as a column stores it. */
export const encodePayload = (value: unknown): string | null => (value === undefined ? null : encode(value));
