import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { CallOf, ResponseOf, RouteName } from "../protocol/contract.ts";
import type { Role } from "../protocol/route.ts";
import type { Transport } from "../protocol/transport.ts";
import type { Store } from "../store/contract/store.ts";
import type { TlsOptions } from "./http-transport.ts";
import type { CallOptions } from "./rpc-caller.ts";

/** How to connect to a server. */
export interface RemoteOptions {
  /**
   * `id.secret`, as the server returned it. Absent: a server on this machine that requires none. Default: `TAPE_TOKEN`.
   */
  readonly token?: string | undefined;
  /** Trusted authorities, and a certificate of this process. Default: the system's authorities. */
  readonly tls?: TlsOptions;
  /** Lets a token travel in clear text to another machine; only for a closed network. Default false. */
  readonly allowPlain?: boolean;
  /** How long a call is retried while no server responds. Default 20 s. */
  readonly retryForMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  /** Replaces sockets; a seam for tests. */
  readonly exchange?: Transport;
}

/** A store behind a server, with the same methods and guarantees as any store. */
export interface RemoteStore extends Store {
  /** Tenant and role of the token, and every call of the protocol. */
  readonly remote: {
    readonly tenant: string;
    /** The permissions of the token. */
    readonly role: Role;
    /** Every call of the HTTP contract, including those that a store does not have. */
    call<N extends RouteName>(name: N, parts: CallOf<N>, options?: CallOptions): Promise<ResponseOf<N>>;
  };
}

export const isRemote = (store: Store): store is RemoteStore => "remote" in store;
