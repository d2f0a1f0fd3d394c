import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { systemRandom } from "../base/random.ts";
import { identify } from "../lease/identity.ts";
import { type Api, localApi, remoteApi } from "../mcp/api.ts";
import type { Role } from "../model/roles.ts";
import { createRunner, type Runner } from "../sdk/workflow.ts";
import { TapeServer } from "../server/server.ts";
import type { Store } from "../store/contract/store.ts";

/** The API that the tools of `durable-tape mcp` call. */
export interface OpenedApi extends AsyncDisposable {
  readonly api: Api;
}

export interface StoreApiOptions {
  readonly store: Store;
  readonly tenant: string;
  readonly role: Role;
  readonly version: string;
  readonly log: Log;
  readonly runner?: Runner;
}

/**
 * Its sessions have no token of the store, but one identity all the same: a run that one of them started, none of them
 * may approve. No token of a store has an id with a colon.
 */
const localToken = "mcp:stdio";

/** A server without a socket over an opened store: the tools find the same API, checks and audit log as over HTTP. */
export function storeApi({ store, tenant, role, version, log, runner }: StoreApiOptions): OpenedApi {
  const server = new TapeServer({
    ...{ store, tenant, version, log, credentials: "none" },
    identity: identify(process.env, systemRandom),
    caller: { role, name: "mcp", token: localToken },
    runner: runner ?? createRunner({ workflows: [] }),
  });
  return {
    api: localApi(server.exchange, { clock: systemClock, random: systemRandom, log }),
    async [Symbol.asyncDispose]() {
      await server.drain(5_000);
      server.close();
    },
  };
}

/** A server that is reached over the network, with its own credential. */
export function serverApi(urls: string, token: string | undefined, log: Log): OpenedApi {
  const { close, ...api } = remoteApi(urls, token, { clock: systemClock, random: systemRandom, log });
  return { api, [Symbol.asyncDispose]: close };
}
