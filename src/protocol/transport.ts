/**
 * The layer below the contract: a request and its response, independent of the transport. In production a socket
 * carries them; tests can call the server's function directly, so that the whole path is covered without a socket.
 */
export interface WireRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Aborted when the caller has disconnected or needs no more of a stream. */
  readonly signal?: AbortSignal;
  /** The caller's address, if the transport knows it. */
  readonly from?: string;
}

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body, or a stream that ends when its producer ends. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  /** The same body compressed with gzip, if it is cached. */
  readonly packed?: Uint8Array;
}

export type Transport = (request: WireRequest) => Promise<WireResponse>;

/** The contract's version; another major version is another protocol. */
export const protocolVersion = "1";
export const jsonType = "application/json";
export const linesType = "application/x-ndjson";
export const eventsType = "text/event-stream";

/** The line of a stream that is only a heartbeat. */
export const heartbeatLine = "";

/** Marks calls that a model makes with the tools of MCP; the audit log shows it. It grants and denies nothing. */
export const channelHeader = "tape-channel";
