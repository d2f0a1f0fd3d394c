import { BlockList, isIP } from "node:net";

/** An address to connect to, as a resolver returns it. */
export interface HostAddress {
  /** The address as text. */
  readonly address: string;
  /** Its family: 4 or 6. */
  readonly family: 4 | 6;
}

/**
 * IPv4 blocks outside the public internet (IANA's special-purpose registry), and 168.63.129.16, a public address at which
 * one cloud serves metadata to its machines. Other clouds use link-local, shared or unique-local addresses for that.
 */
const closed4 =
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 " +
  "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32";

/** The only public IPv6 block. Embedded IPv4 (mapped, NAT64, compatible) is outside of it. */
const open6 = "2000::/3";
/** Refused inside of it: protocol assignments with Teredo, documentation, and 6to4, which carries an IPv4 address. */
const closed6 = "2001::/23 2001:db8::/32 2002::/16 3fff::/20";

interface Lists {
  readonly refused4: BlockList;
  readonly public6: BlockList;
  readonly refused6: BlockList;
}

let lists: Lists | undefined;

/** Built on first use, because most programs that load this module never need them. */
function known(): Lists {
  lists ??= {
    refused4: blocks(closed4.split(" ")),
    public6: blocks([open6]),
    refused6: blocks(closed6.split(" ")),
  };
  return lists;
}

/** Whether an address belongs to the public internet. */
export function isPublic({ address, family }: HostAddress): boolean {
  if (isIP(address) !== family || address.includes("%")) return false; // a zone names an interface of this machine
  const { refused4, public6, refused6 } = known();
  if (family === 4) return !refused4.check(address, "ipv4");
  return public6.check(address, "ipv6") && !refused6.check(address, "ipv6");
}

/** Whether an address is explicitly allowed although it is not public. */
export function allowed(list: BlockList, { address, family }: HostAddress): boolean {
  if (isIP(address) !== family || address.includes("%")) return false;
  return list.check(address, family === 4 ? "ipv4" : "ipv6");
}

/** Parses "10.1.0.0/16", "fd00::/8" or a single address; throws at anything else. */
export function blocks(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [network = "", prefix, more] = String(text).split("/");
    const family = isIP(network);
    const widest = family === 4 ? 32 : 128;
    const bits = prefix === undefined ? widest : /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1;
    if (family === 0 || network.includes("%") || more !== undefined || bits < 0 || bits > widest) {
      throw new Error(`${text} is not an address or a block such as 10.1.0.0/16`);
    }
    list.addSubnet(network, bits, family === 4 ? "ipv4" : "ipv6");
  }
  return list;
}
