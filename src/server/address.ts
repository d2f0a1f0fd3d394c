import { BlockList, isIP, isIPv6 } from "node:net";
import { TapeError } from "../model/errors.ts";

/** Whether an address belongs to a proxy whose headers about its callers are trusted. */
export type ProxyTrust = (address: string) => boolean;

export const trustNone: ProxyTrust = () => false;

/** `"10.0.0.0/8, ::1"`: addresses and networks of proxies that forward the addresses of their callers. */
export function trustedProxies(text: string): ProxyTrust {
  const list = new BlockList();
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue;
    const [address = "", bits, rest] = entry.split("/");
    const family = isIP(address);
    const maxBits = family === 4 ? 32 : 128;
    const prefix = bits === undefined ? maxBits : Number(bits);
    if (family === 0 || rest !== undefined || !/^\d*$/.test(bits ?? "") || bits === "" || prefix > maxBits) {
      const message = `tape.server.trusted_proxies: ${JSON.stringify(entry)} is neither an address nor a network like 10.0.0.0/8`;
      throw new TapeError("TAPE_BAD_CONFIG", message);
    }
    list.addSubnet(address, prefix, family === 4 ? "ipv4" : "ipv6");
  }
  return (address) => {
    const plain = plainAddress(address);
    return isIP(plain) !== 0 && list.check(plain, isIPv6(plain) ? "ipv6" : "ipv4");
  };
}

/** The plain form of an IPv4 address, also where a dual-stack socket shows it as an IPv6 address. */
export function plainAddress(address: string): string {
  const [, mapped] = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address) ?? [];
  return mapped ?? address.split("%", 1)[0]!;
}

/** Maximum number of hops that are read; no real proxy chain is longer. */
const maxHops = 32;

/**
 * The address of the caller: the peer of the connection or, where that is a trusted proxy, the last address before the
 * trusted ones. The caller itself may have written anything further left, so it is not trusted.
 */
export function callerAddress(
  peer: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  trusted: ProxyTrust,
): string {
  if (!trusted(peer)) return plainAddress(peer);
  const hops = hopsOf(headers);
  for (const hop of hops.toReversed().slice(0, maxHops)) if (!trusted(hop)) return plainAddress(hop);
  return plainAddress(hops[0] ?? peer);
}

function hopsOf(headers: Readonly<Record<string, string | string[] | undefined>>): string[] {
  const text = (name: string): string => [headers[name] ?? []].flat().join(",");
  const forwarded = text("forwarded")
    .split(/[,;]/)
    .map((part) => part.trim())
    .filter((part) => part.toLowerCase().startsWith("for="))
    .map((part) => part.slice(4));
  const given = forwarded.length > 0 ? forwarded : text("x-forwarded-for").split(",");
  return given.map(addressIn).filter((address) => isIP(address) !== 0);
}

/** `"[2001:db8::1]:4711"`, `192.0.2.1:80` and the plain forms. */
function addressIn(text: string): string {
  const bare = text.trim().replaceAll('"', "");
  if (bare.startsWith("[")) return bare.slice(1, bare.indexOf("]"));
  const parts = bare.split(":");
  return parts.length === 2 ? parts[0]! : bare;
}

/** The key that limits count by. An IPv6 /64 network is one customer, who has 2^64 addresses. */
export function limitKey(address: string): string {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const after = tail === "" ? [] : tail.split(":");
    while (groups.length + after.length < 8) groups.push("0");
    groups.push(...after);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
