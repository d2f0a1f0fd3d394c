import type { Duration } from "../base/duration.ts";

/** The answer to a gate. */
export type GateAnswer<T> = { readonly status: "received"; readonly value: T } | { readonly status: "timeout" };

/** A request that a gate with `reply: true` has received, or the end of its wait. */
export type GateRequest<T, R> =
  | {
      readonly status: "received";
      readonly value: T;
      /** Answers the request, once: everyone who asks with its key gets this value. Recorded with the next write. */
      reply(value: R): void;
      /** Answers the request with an error instead. */
      reject(error: unknown): void;
    }
  | { readonly status: "timeout" };

/** How long a callback may take, and what the code receives of it. */
export interface CallbackOptions {
  /** How long the other system may take. Default: without end. */
  readonly timeout?: Duration;
  /**
   * The code receives the body's text and the headers that senders sign, as a {@link RawCallback}. Default false: it
   * receives the decoded JSON.
   */
  readonly raw?: boolean;
}

/** What a callback with `raw: true` receives. Check the sender's signature in a step. */
export interface RawCallback {
  /** The text of the body, exactly as it was sent. */
  readonly body: string;
  /** The headers that senders sign, by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A gate that only its token opens, once: for a system that calls back when its work is done. */
export interface Callback<T> {
  /** The address that the other system calls. TAPE_NO_PUBLIC_URL unless the server's public address is set. */
  readonly url: string;
  /** The same on replay, and not in the journal. `app.deliver` takes it where another server receives the call. */
  readonly token: string;
  /** Waits until the other system has called, or until the time-out. */
  result(): Promise<GateAnswer<T>>;
}
