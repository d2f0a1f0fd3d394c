import { describe, expect, it } from "vitest";
import { callerAddress, limitKey, trustedProxies, trustNone } from "../../src/server/address.ts";

describe("the caller's address", () => {
  const trusted = trustedProxies("10.0.0.0/8, 2001:db8:ff::/48,127.0.0.1");

  it("is the peer's, whatever the headers say, unless the peer is a trusted proxy", () => {
    const headers = { "x-forwarded-for": "198.51.100.9", forwarded: "for=198.51.100.9" };
    expect(callerAddress("203.0.113.7", headers, trusted)).toBe("203.0.113.7");
    expect(callerAddress("10.1.2.3", headers, trustNone)).toBe("10.1.2.3");
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

  it("refuses a setting that is not a list of addresses", () => {
    for (const text of ["proxy.example", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8x", "::1/129"]) {
      expect(() => trustedProxies(text), text).toThrow(/TAPE_BAD_CONFIG: tape.server.trusted_proxies/);
    }
  });

  it("keys limits by IPv4 address and by IPv6 network", () => {
    expect(limitKey("2001:db8:0:7:1:2:3:4")).toBe(limitKey("2001:0db8::7:ffff:0:0:1"));
    expect(limitKey("2001:db8::1")).not.toBe(limitKey("2001:db8:0:1::1"));
    expect(limitKey("fe80::1%eth0")).toBe(limitKey("fe80::2"));
    expect([limitKey("192.0.2.1"), limitKey("::ffff:192.0.2.1")]).toEqual(["192.0.2.1", "192.0.2.1"]);
  });
});
