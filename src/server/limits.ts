/** Bounds of the door itself; what may be stored is bounded by the store's own limits. */
export interface ServerLimits {
  /** Bytes of one request's body, as sent and unpacked. A batch of appends is the largest thing there is. */
  readonly bodyBytes: number;
  /** Bytes of all bodies together that are being read or worked on; a tenant gets half of them, a token a quarter. */
  readonly bodiesBytes: number;
  /** Values in one body, where a new name counts as ten: what it takes to parse goes by them. */
  readonly values: number;
  /** Levels of arrays and objects in a body. */
  readonly depth: number;
  /** Calls under way at once. Of this and the next three a tenant gets half, and a token three quarters of that. */
  readonly requests: number;
  /** Renewals and appends under way at once, beside the other calls. */
  readonly renewals: number;
  /** Calls that wait for the end of a run. */
  readonly waiters: number;
  /** Streams open at once. */
  readonly streams: number;
  readonly connections: number;
  /** Connections of one address, or of one /64 network of IPv6; a trusted proxy has no bound of its own. */
  readonly connectionsPerAddress: number;
  /** Bytes of all answers that are written and not read; beyond it those that wait longest are cut off. */
  readonly answersBytes: number;
  /** Calls of one tenant in a second, over time and at once. */
  readonly ratePerSecond: number;
  readonly rateBurst: number;
  /** Credentials from one address that were refused, in a minute; those that were good lately are not counted against it. */
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
  answersBytes: 256 * 1024 * 1024,
  ratePerSecond: 10_000,
  rateBurst: 20_000,
  failedSignIns: 120,
};
