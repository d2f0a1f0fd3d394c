import type { z } from "zod";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { addressOf } from "../client/address.ts";
import { httpExchange } from "../client/http-transport.ts";
import { type Parts, prepareRequest } from "../client/request.ts";
import { RpcCaller } from "../client/rpc-caller.ts";
import type { CallOf, Contract, RouteName } from "../protocol/contract.ts";
import { channelHeader, type Transport } from "../protocol/transport.ts";

/** The response of a route as JSON: numbers beyond 2^53 are text, and values have their wire format. */
export type WireOf<N extends RouteName> = z.input<Contract[N]["answer"]>;

export interface ApiCallOptions {
  readonly key?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The calls of the HTTP contract, which is all that the tools use. So a tool can do nothing that its token could not do
 * over HTTP, and whatever the server checks, counts, hides or audits there holds here, too.
 */
export interface Api {
  call<N extends RouteName>(name: N, parts: CallOf<N>, options?: ApiCallOptions): Promise<WireOf<N>>;
}

export interface ApiDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Calls over this transport. It has no retries of its own: the server that it calls is this process. */
export function localApi(exchange: Transport, deps: ApiDeps): Api {
  return apiOf(new RpcCaller({ ...deps, exchanges: [marked(exchange)], retryForMs: 0 }));
}

export interface RemoteApi extends Api {
  close(): Promise<void>;
}

/** Calls to a server, or to several replicas with commas between their addresses. */
export function remoteApi(urls: string, token: string | undefined, deps: ApiDeps): RemoteApi {
  const rules = { token: token !== undefined, allowPlain: false };
  const wires = urls.split(",").map((url) => httpExchange({ address: addressOf(url, rules), clock: deps.clock }));
  const caller = new RpcCaller({ ...deps, token, exchanges: wires.map(({ exchange }) => marked(exchange)) });
  return {
    ...apiOf(caller),
    async close() {
      await caller.close();
      for (const wire of wires) wire.close();
    },
  };
}

const apiOf = (caller: RpcCaller): Api => ({
  call: async (name, parts, options) =>
    (await caller.send(name, prepareRequest(name, parts as Parts), options)) as never,
});

/** The audit log shows by this header that a model called. */
function marked(exchange: Transport): Transport {
  return (request) => exchange({ ...request, headers: { ...request.headers, [channelHeader]: "mcp" } });
}
