import { describe, expect, it } from "vitest";
import { isLoopbackAddress, type Lookup, loopbackAddresses } from "../../src/base/loopback.ts";

const leadsTo =
  (...addresses: string[]): Lookup =>
  async () =>
    addresses.map((address) => ({ address }));

describe("this machine", () => {
  it.each(["127.0.0.1", "127.8.9.10", "::1", "[::1]", "::ffff:127.0.0.1"])("%s is", (address) =>
    expect(isLoopbackAddress(address)).toBe(true),
  );

  it.each(["10.0.0.1", "::", "0.0.0.0", "localhost", "127.0.0.1.example", "128.0.0.1", "::ffff:10.0.0.1", ""])(
    "%s is not",
    (address) => expect(isLoopbackAddress(address)).toBe(false),
  );

  it("localhost is a name: it counts only where all that it leads to is here", async () => {
    expect(await loopbackAddresses("localhost", leadsTo("::1", "127.0.0.1"))).toEqual(["::1", "127.0.0.1"]);
    expect(await loopbackAddresses("localhost", leadsTo("127.0.0.1", "10.0.0.7"))).toEqual([]);
    expect(await loopbackAddresses("LOCALHOST", leadsTo("10.0.0.7"))).toEqual([]);
    expect(await loopbackAddresses("localhost", () => Promise.reject(new Error("ENOTFOUND")))).toEqual([]);
  });

  it("no other name counts, wherever it leads", async () => {
    expect(await loopbackAddresses("db.example", leadsTo("127.0.0.1"))).toEqual([]);
    expect(await loopbackAddresses("[::1]")).toEqual(["::1"]);
  });
});
