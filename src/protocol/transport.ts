/**
 * What both ends of the wire agree on below the contract: a request and its answer, whoever carries them. A socket does
 * in production; in tests the server's own function can stand in for it, so that the whole path is tried without one.
 */
export interface WireRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** The caller has gone, or wants no more of a stream. */
  readonly signal?: AbortSignal;
  /** The address of the caller, where the carrier knows it. */
  readonly from?: string;
}

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** All of it, or a stream that ends when the other side does. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  /** The same body as gzip, where it is kept ready. */
  readonly packed?: Uint8Array;
}

export type Transport = (request: WireRequest) => Promise<WireResponse>;

/** The contract's version: another first number is another protocol. */
export const protocolVersion = "1";
export const jsonType = "application/json";
export const linesType = "application/x-ndjson";

/** A line of a stream that says only that the stream is alive. */
export const heartbeatLine = "";
