import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { CallOf, ResponseOf, RouteName } from "../protocol/contract.ts";
import type { Role } from "../protocol/route.ts";
import type { Transport } from "../protocol/transport.ts";
import type { Store } from "../store/contract/store.ts";
import type { TlsOptions } from "./http-transport.ts";
import type { CallOptions } from "./rpc-caller.ts";

export interface RemoteOptions {
  /** `id.secret`, as the server gave it. Absent: a server on this machine that asks for none. */
  readonly token?: string | undefined;
  readonly tls?: TlsOptions;
  /** A token may travel in clear to another machine: only where the network itself is closed. Default false. */
  readonly allowPlain?: boolean;
  /** How long a call is repeated while no server answers. Default 20 s. */
  readonly patienceMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  /** Carries requests instead of sockets: a seam for tests. */
  readonly exchange?: Transport;
}

/** A store behind a server. Everything that works on a store works on it, with the same guarantees. */
export interface RemoteStore extends Store {
  readonly remote: {
    readonly tenant: string;
    readonly role: Role;
    /** Every call of the contract, also those that a store does not have. */
    call<N extends RouteName>(name: N, parts: CallOf<N>, options?: CallOptions): Promise<ResponseOf<N>>;
  };
}

export const isRemote = (store: Store): store is RemoteStore => "remote" in store;
