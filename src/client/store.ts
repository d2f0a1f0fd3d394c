import { type Clock, systemClock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import { type Log, silentLog } from "../base/log.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { defaultLimits } from "../model/limits.ts";
import type { ResponseOf } from "../protocol/contract.ts";
import { validated } from "../store/validate/store.ts";
import { type Address, addressOf } from "./address.ts";
import { remoteClaim } from "./claim.ts";
import type { RemoteContext } from "./context.ts";
import { CreateBatcher } from "./create-batcher.ts";
import { remoteFenced } from "./fenced.ts";
import { remoteHealth } from "./health.ts";
import { httpExchange } from "./http-transport.ts";
import { remoteIntake } from "./intake.ts";
import { remoteRead } from "./read.ts";
import type { RemoteOptions, RemoteStore } from "./remote.ts";
import { RpcCaller } from "./rpc-caller.ts";
import { WakeStream } from "./wake-stream.ts";

/** Connects and assembles the store. Programs call `openRemote` of open.ts, which loads this module on first use. */
export async function openRemote(urls: string | readonly string[], options: RemoteOptions = {}): Promise<RemoteStore> {
  const { token, clock = systemClock, random = systemRandom, log = silentLog, retryForMs, tls } = options;
  const rules = { token: token !== undefined, allowPlain: options.allowPlain ?? false };
  const addresses = (typeof urls === "string" ? urls.split(",") : urls).map((url): Address => addressOf(url, rules));
  const wires =
    options.exchange === undefined
      ? addresses.map((address) => httpExchange({ address, clock, ...defined({ tls }) }))
      : [];
  const exchanges = options.exchange === undefined ? wires.map(({ exchange }) => exchange) : [options.exchange];
  const caller = new RpcCaller({
    exchanges,
    token,
    clock,
    random,
    log,
    ...defined({ retryForMs }),
  });
  const letGo = (): void => {
    for (const wire of wires) wire.close();
  };
  try {
    const me = await caller.call("whoami", {});
    return assemble({ caller, clock, random, log, letGo, me });
  } catch (error) {
    letGo();
    throw error;
  }
}

interface Parts {
  readonly caller: RpcCaller;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly me: ResponseOf<"whoami">;
  readonly letGo: () => void;
}

/**
 * Batched requests in flight: as many as the server's store has channels. With four, a remote driver reached 0.53 of an
 * embedded driver's steps per second at 128 concurrent runs; with two, 0.50.
 */
const maxRequestsPostgres = 4;
/** SQLite commits one at a time, and more requests only make each commit smaller: 0.47 with two, 0.27 with four. */
const maxRequestsSqlite = 2;

function assemble({ caller, clock, random, log, me, letGo }: Parts): RemoteStore {
  const { tenant, role, backend, transactionBoundMs } = me;
  const limits = { ...defaultLimits, ...me.limits };
  const maxRequests = backend === "sqlite" ? maxRequestsSqlite : maxRequestsPostgres;
  const deps: RemoteContext = { caller, clock, limits, tenant, role, maxRequests };
  const fenced = remoteFenced(deps);
  const creations = new CreateBatcher(deps);
  const wakes = new WakeStream({ caller, clock, random, log });
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    wakes.close();
    caller.refuse(); // new calls; the batchers may still send what they have accepted
    await Promise.all([fenced.close(), creations.close()]);
    await caller.close();
    letGo();
  };
  const store = validated({
    backend,
    limits,
    transactionBoundMs,
    exclusive: false, // other clients may be connected to the same server
    intake: remoteIntake(deps, creations),
    claim: remoteClaim(deps),
    fenced,
    read: remoteRead(deps),
    once: ({ key }) => remoteIntake(deps, creations, key),
    health: () => remoteHealth(caller),
    onWake: (listener) => wakes.on(listener),
    close: () => {
      closing ??= close();
      return closing;
    },
  });
  return { ...store, remote: { tenant, role, call: (name, parts, options) => caller.call(name, parts, options) } };
}
