import type { RouteName } from "../protocol/contract.ts";
import type { WireResponse } from "../protocol/transport.ts";
import type { Caller } from "./handler-types.ts";

/** What is known of a call so far. */
export interface CallProgress {
  route: RouteName | "none";
  who?: Caller;
  /** The page of another origin that reads the response. */
  page?: string | undefined;
  /** Frees the call's place and body space; a second call does nothing. */
  leave: () => void;
}

/** A response, and the function to call when it is completely written or its reader has disconnected. */
export interface HandledRequest {
  readonly response: WireResponse;
  readonly written: () => void;
}
