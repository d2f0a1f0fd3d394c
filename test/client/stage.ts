import type { RemoteOptions, RemoteStore } from "../../src/client/remote.ts";
import { openRemote } from "../../src/client/store.ts";
import type { Transport } from "../../src/protocol/transport.ts";
import { TapeServer } from "../../src/server/server.ts";
import type { Store } from "../../src/store/contract/store.ts";

/** A server in this process without credentials: every caller is admin of the tenant. */
export function serverOn(store: Store, tenant: string): TapeServer {
  return new TapeServer({
    store,
    tenant,
    identity: { owner: "server", label: "server" },
    version: "test",
    credentials: "none",
    limits: { ratePerSecond: 1e9, rateBurst: 1e9 }, // a whole test's calls come in a moment
  });
}

/**
 * A client of such a server: the whole way but for the socket. Both ends keep real time for their own waiting, whatever
 * time the store and the engine keep: none of it is asked of them.
 */
export function remoteOn(
  store: Store,
  tenant: string,
  options: RemoteOptions & { readonly through?: (exchange: Transport) => Transport } = {},
): Promise<RemoteStore> {
  const { through = (exchange) => exchange, ...more } = options;
  const { exchange } = serverOn(store, tenant);
  return openRemote("http://127.0.0.1:1", { exchange: through(exchange), ...more });
}
