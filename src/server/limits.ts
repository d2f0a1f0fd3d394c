/** Limits of the server itself; the store's own limits bound what may be stored. */
export interface ServerLimits {
  /** Bytes of one request's body, as sent and unpacked. A batch of appends is the largest body. */
  readonly bodyBytes: number;
  /** Bytes of all bodies that are read or in use; a tenant gets half of them, a token a quarter. */
  readonly bodiesBytes: number;
  /** Values in one body, where a new name counts as ten: they determine the parse time. */
  readonly values: number;
  /** Levels of arrays and objects in a body. */
  readonly depth: number;
  /** Concurrent calls. Of this and the next three a tenant gets half, and a token three quarters of that. */
  readonly requests: number;
  /** Concurrent renewals and appends, besides the other calls. */
  readonly renewals: number;
  /** Calls that wait for the end of a run. */
  readonly waiters: number;
  /** Open streams. */
  readonly streams: number;
  readonly connections: number;
  /** Connections of one address, or of one IPv6 /64 network; a trusted proxy is not limited. */
  readonly connectionsPerAddress: number;
  /** Bytes of all written but unread responses; beyond it the oldest ones are aborted. */
  readonly unreadBytes: number;
  /** Calls of one tenant per second, over time (`ratePerSecond`) and at once (`rateBurst`). */
  readonly ratePerSecond: number;
  readonly rateBurst: number;
  /** Bad credentials from one address per minute; credentials that were accepted recently are not affected. */
  readonly failedSignIns: number;
}

export const defaultServerLimits: ServerLimits = {
  bodyBytes: 16 * 1024 * 1024,
  bodiesBytes: 256 * 1024 * 1024,
  values: 100_000,
  depth: 64,
  requests: 4_096,
  renewals: 2_048,
  waiters: 2_048,
  streams: 2_048,
  connections: 8_192,
  connectionsPerAddress: 2_048,
  unreadBytes: 256 * 1024 * 1024,
  ratePerSecond: 10_000,
  rateBurst: 20_000,
  failedSignIns: 120,
};
