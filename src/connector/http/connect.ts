import { type BlockList, connect as connectTcp, isIP, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { network } from "../../base/network.ts";
import { NotSent } from "../../sdk/outcomes.ts";
import { allowed, type HostAddress, isPublic } from "./addresses.ts";

/** Resolves a host name to all its addresses. */
export type ResolveHost = (host: string) => Promise<readonly HostAddress[]>;

/** How to reach a server. */
export interface ReachOptions {
  readonly resolve: ResolveHost;
  readonly allow: BlockList;
  readonly connectMs: number;
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  readonly clock: Clock;
}

export const systemResolve: ResolveHost = async (host) => {
  const found = await network.dns.lookup(host, { all: true, verbatim: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
};

/** The address is not one that a request may go to. Nothing was sent, and a retry would send nothing either. */
export class AddressRefused extends NotSent {}

/**
 * Opens a connection, including the TLS handshake, and sends nothing. Every failure here is NotSent.
 *
 * The name is resolved once, and the connection goes to the address that was checked. A second lookup at connect time
 * would let a name server return a different address.
 */
export async function reach(url: URL, by: ReachOptions, signal: AbortSignal): Promise<Socket> {
  const limit = new AbortController();
  const cancel = by.clock.after(by.connectMs, () => limit.abort(new Error(`no connection within ${by.connectMs} ms`)));
  const either = AbortSignal.any([signal, limit.signal]);
  try {
    const addresses = await unlessAborted(addressesOf(url, by), either);
    let last: unknown;
    for (const address of addresses) {
      if (either.aborted) break;
      try {
        return await open(url, address, by, either);
      } catch (error) {
        last = error;
      }
    }
    throw either.aborted ? either.reason : last;
  } catch (error) {
    if (error instanceof NotSent) throw error;
    throw new NotSent(`no connection to ${url.host}: ${messageOf(error)}`, { cause: error });
  } finally {
    cancel();
  }
}

async function addressesOf(url: URL, by: ReachOptions): Promise<readonly HostAddress[]> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(host);
  const found = family === 0 ? await by.resolve(host) : [{ address: host, family: family === 6 ? 6 : 4 } as const];
  if (found.length === 0) throw new NotSent(`${host} has no address`);
  // An attacker's name mixes private addresses with public ones, so one refused address disqualifies them all.
  const closed = found.find((address) => !isPublic(address) && !allowed(by.allow, address));
  if (closed === undefined) return found;
  throw new AddressRefused(
    `${host} is ${closed.address}, which is not a public address; list it in allow if it is intended`,
  );
}

function open(url: URL, { address, family }: HostAddress, by: ReachOptions, signal: AbortSignal): Promise<Socket> {
  const secure = url.protocol === "https:";
  const port = Number(url.port || (secure ? 443 : 80));
  const target = { host: address, port, family };
  // A name is sent to the server and compared with its certificate; a bare address is compared as such.
  const named = isIP(url.hostname.replace(/^\[(.*)\]$/, "$1")) === 0;
  const socket: Socket | TLSSocket = secure
    ? network.tls.connect({ ...target, ...by.tls, servername: named ? url.hostname : "", ALPNProtocols: ["http/1.1"] })
    : connectTcp({ ...target, autoSelectFamily: false });
  socket.on("error", () => {}); // an error without a listener would end the process
  return new Promise((resolve, reject) => {
    const end = (error: unknown): void => {
      socket.destroy();
      reject(error);
    };
    const stop = (): void => end(signal.reason);
    const done = (): void => {
      signal.removeEventListener("abort", stop);
      socket.removeListener("error", end);
    };
    signal.addEventListener("abort", stop, { once: true });
    socket.once("error", end);
    socket.once("close", () => end(new Error("the connection was closed")));
    socket.once(secure ? "secureConnect" : "connect", () => {
      done();
      resolve(socket);
    });
  });
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Network errors often have a code and no message. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || String((error as { code?: unknown }).code ?? error.name);
}
