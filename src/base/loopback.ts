import { network } from "./network.ts";

const loopback = /^(127(\.\d{1,3}){3}|::1|::ffff:127(\.\d{1,3}){3})$/i;

/** Whether an address (not a host name) is this machine's own, so that traffic to it crosses no network. */
export const isLoopbackAddress = (address: string): boolean => loopback.test(address.replace(/^\[(.*)\]$/, "$1"));

export type Lookup = (name: string) => Promise<readonly { readonly address: string }[]>;

const systemLookup: Lookup = (name) => network.dns.lookup(name, { all: true, verbatim: true });

/**
 * The addresses of a host that must be this machine; empty if it is not. `localhost` is an ordinary name: /etc/hosts or
 * a resolver may point it elsewhere, so it counts only if all of its addresses are loopback addresses.
 */
export async function loopbackAddresses(host: string, lookup: Lookup = systemLookup): Promise<readonly string[]> {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  if (isLoopbackAddress(bare)) return [bare];
  if (bare.toLowerCase() !== "localhost") return [];
  const found = (await lookup(bare).catch(() => [])).map(({ address }) => address);
  return found.every(isLoopbackAddress) ? found : [];
}
