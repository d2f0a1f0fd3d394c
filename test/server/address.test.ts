import { describe, expect, it } from "vitest";
import { callerAddress, limitKey, nobodyTrusted, trustedProxies } from "../../src/server/address.ts";

describe("whose request it is", () => {
  const trusted = trustedProxies("10.0.0.0/8, 2001:db8:ff::/48,127.0.0.1");

  it("the connection's other end, whatever its headers say, unless it is a trusted proxy", () => {
    const headers = { "x-forwarded-for": "198.51.100.9", forwarded: "for=198.51.100.9" };
    expect(callerAddress("203.0.113.7", headers, trusted)).toBe("203.0.113.7");
    expect(callerAddress("10.1.2.3", headers, nobodyTrusted)).toBe("10.1.2.3");
    expect(callerAddress("::ffff:203.0.113.7", headers, trusted)).toBe("203.0.113.7");
  });

  const hops: readonly [string, Record<string, string>, string][] = [
    ["one hop", { "x-forwarded-for": "198.51.100.9" }, "198.51.100.9"],
    ["what the caller wrote before it", { "x-forwarded-for": "1.1.1.1, 198.51.100.9" }, "198.51.100.9"],
    ["several trusted ones", { "x-forwarded-for": "1.1.1.1, 198.51.100.9, 10.9.9.9" }, "198.51.100.9"],
    ["a port", { "x-forwarded-for": "198.51.100.9:4711" }, "198.51.100.9"],
    ["RFC 7239", { forwarded: 'for=1.1.1.1, for="[2001:db8::17]:4711";proto=https;by=10.0.0.1' }, "2001:db8::17"],
    ["RFC 7239 before the other", { forwarded: "for=198.51.100.9", "x-forwarded-for": "1.1.1.1" }, "198.51.100.9"],
    ["words that are no address", { "x-forwarded-for": "unknown, _hidden, <script>" }, "10.1.2.3"],
    ["none", {}, "10.1.2.3"],
  ];
  it.each(hops)("through a trusted proxy: %s", (_what, headers, address) => {
    expect(callerAddress("10.1.2.3", headers, trusted)).toBe(address);
    expect(callerAddress("::ffff:10.1.2.3", headers, trusted)).toBe(address);
  });

  it("a setting that is no list of addresses is refused", () => {
    for (const text of ["proxy.example", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8x", "::1/129"]) {
      expect(() => trustedProxies(text), text).toThrow(/TAPE_BAD_CONFIG: tape.server.trusted_proxies/);
    }
  });

  it("limits go by the network of an IPv6 address, and by one of IPv4", () => {
    expect(limitKey("2001:db8:0:7:1:2:3:4")).toBe(limitKey("2001:0db8::7:ffff:0:0:1"));
    expect(limitKey("2001:db8::1")).not.toBe(limitKey("2001:db8:0:1::1"));
    expect(limitKey("fe80::1%eth0")).toBe(limitKey("fe80::2"));
    expect([limitKey("192.0.2.1"), limitKey("::ffff:192.0.2.1")]).toEqual(["192.0.2.1", "192.0.2.1"]);
  });
});
