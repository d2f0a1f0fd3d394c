import { describe, expect, it } from "vitest";
import { allowed, blocks, isPublic } from "../../src/connector/http/addresses.ts";
import { httpConnector } from "../../src/connector/http/connector.ts";
import { type DefiniteFailure, NotSent } from "../../src/sdk/outcomes.ts";
import { answer, cameOf, context, serve } from "./server.ts";

const familyOf = (address: string): 4 | 6 => (address.includes(":") ? 6 : 4);
const judged = (address: string): boolean => isPublic({ address, family: familyOf(address) });

describe("public addresses", () => {
  it.each([
    ["this machine", "127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 ::1 ::"],
    ["private", "10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255"],
    ["unique-local and site-local", "fc00::1 fd12:3456::1 fdff:ffff::1 fec0::1"],
    ["link-local", "169.254.0.1 169.254.255.255 fe80::1 febf::1 fe80::1%eth0"],
    ["shared with the provider", "100.64.0.1 100.127.255.255"],
    ["metadata services", "169.254.169.254 fd00:ec2::254 100.100.100.200 192.0.0.192 168.63.129.16"],
    ["multicast and reserved", "224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 ff02::1"],
    [
      "documentation and benchmarks",
      "192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 198.19.255.255 2001:db8::1 3fff::1",
    ],
    ["IPv4 in disguise", "::ffff:127.0.0.1 ::ffff:8.8.8.8 ::7f00:1 64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1:: 2001::1"],
    ["nonsense", "1.2.3 localhost 8.8.8.8.8"],
  ])("not: %s", (_, list) => {
    for (const address of list.split(" ")) expect([address, judged(address)]).toEqual([address, false]);
  });

  it.each([
    [
      "IPv4",
      "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 172.15.255.255",
    ],
    ["more IPv4", "172.32.0.0 169.253.255.255 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255"],
    ["IPv6", "2606:4700::1111 2a00:1450::1 2001:4860:4860::8888 3000::1"],
  ])("public: %s", (_, list) => {
    for (const address of list.split(" ")) expect([address, judged(address)]).toEqual([address, true]);
  });

  it("refuses a family that is not the address's own", () => {
    expect(isPublic({ address: "8.8.8.8", family: 6 })).toBe(false);
    expect(allowed(blocks(["10.0.0.0/8"]), { address: "10.0.0.1", family: 6 })).toBe(false);
  });

  it("matches blocks exactly", () => {
    const list = blocks(["10.1.0.0/16", "127.0.0.1", "fd00::/8"]);
    const inside = (address: string): boolean => allowed(list, { address, family: familyOf(address) });
    expect(["10.1.255.255", "127.0.0.1", "fd00::1"].map(inside)).toEqual([true, true, true]);
    expect(["10.2.0.0", "127.0.0.2", "fc00::1"].map(inside)).toEqual([false, false, false]);
    for (const wrong of ["10.0.0.0/33", "10.0.0", "fd00::/129", "10.0.0.0/8/8", "10.0.0.0/-1", "fe80::1%eth0/64", ""]) {
      expect(() => blocks([wrong]), wrong).toThrow("is not an address or a block");
    }
  });
});

describe("the target of a request", () => {
  const wire = { request: (url: string) => ({ url, body: { amount: 1 } }) };

  it("refuses names of this machine and private networks in any spelling, without a call", async () => {
    const server = await serve(({ socket }) => void socket.end(answer(200)));
    const inner = await serve(({ socket }) => void socket.end(answer(200)), { host: "127.0.0.1" });
    const resolve = async (host: string) => [
      host === "six.test" ? { address: "::1", family: 6 as const } : { address: "127.0.0.1", family: 4 as const },
    ];
    const hook = httpConnector("hook", { ...wire, resolve });
    const hosts = ["127.0.0.1", "localhost", "evil.test", "six.test", "0x7f.1", "2130706433", "0177.0.0.1", "127.1"];
    for (const host of [...hosts, "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "169.254.169.254"]) {
      const { came, error } = await cameOf(hook.dispatch(`http://${host}:${server.port}/`, context()));
      expect([host, came]).toEqual([host, "failure"]);
      expect((error as DefiniteFailure).scope).toBe("attempt");
    }
    expect([server.visits.length, inner.visits.length]).toEqual([0, 0]);
  });

  it("refuses a name with one private address among public ones", async () => {
    const server = await serve(({ socket }) => void socket.end(answer(200)));
    const resolve = async () => [
      { address: "93.184.216.34", family: 4 as const },
      { address: "127.0.0.1", family: 4 as const },
    ];
    const hook = httpConnector("hook", { ...wire, resolve });
    const { came, message } = await cameOf(hook.dispatch(`http://both.test:${server.port}/`, context()));
    expect(came).toBe("failure");
    expect(message).toContain("127.0.0.1, which is not a public address");
    expect(server.visits).toHaveLength(0);
  });

  it("resolves a name once and connects to the checked address", async () => {
    const good = await serve(async ({ socket, whole }) => {
      await whole();
      socket.end(answer(200, "good"));
    });
    const bad = await serve(({ socket }) => void socket.end(answer(200, "bad")), {
      host: "127.0.0.2",
      port: good.port,
    });
    let lookups = 0;
    const resolve = async () => [{ address: ++lookups === 1 ? "127.0.0.1" : "127.0.0.2", family: 4 as const }];
    const hook = httpConnector("hook", { ...wire, resolve, allow: ["127.0.0.1/32"] });
    expect(await hook.dispatch(`http://turn.test:${good.port}/`, context())).toBe("good");
    expect(good.visits[0]!.text()).toContain(`host: turn.test:${good.port}`);
    expect([lookups, good.visits.length, bad.visits.length]).toEqual([1, 1, 0]);
    const again = await cameOf(hook.dispatch(`http://turn.test:${good.port}/`, context()));
    expect([again.came, bad.visits.length]).toEqual(["failure", 0]);
  });

  it("tries the second address when the first is unreachable, and sends once", async () => {
    const server = await serve(async ({ socket, whole }) => {
      await whole();
      socket.end(answer(200, "second"));
    });
    const resolve = async () => [
      { address: "127.0.0.3", family: 4 as const }, // no server listens there
      { address: "127.0.0.1", family: 4 as const },
    ];
    const hook = httpConnector("hook", { ...wire, resolve, allow: ["127.0.0.0/8"] });
    expect(await hook.dispatch(`http://two.test:${server.port}/`, context())).toBe("second");
    expect(server.visits).toHaveLength(1);
  });

  it("keeps requests below the connector's URL whatever the arguments", async () => {
    const server = await serve(({ socket }) => void socket.end(answer(200)));
    const url = `http://127.0.0.1:${server.port}/v1/`;
    const bank = httpConnector("bank", { ...wire, url, allow: ["127.0.0.1"] });
    const ways = [
      "http://127.0.0.1:1/",
      "//evil.test/",
      "/admin",
      "../admin",
      "x/../../admin",
      "x/%2e%2e/%2e%2e/admin",
    ];
    for (const way of [
      ...ways,
      "\\\\evil.test\\",
      "file:///etc/passwd",
      "https://u:p@127.0.0.1/",
      "ftp://x/",
      "http://[",
    ]) {
      expect([way, (await cameOf(bank.dispatch(way, context()))).came]).toEqual([way, "failure"]);
    }
    // Another server that may be reached and has the same paths is not this connector's either.
    const other = await serve(({ socket }) => void socket.end(answer(200)));
    const elsewhere = await cameOf(bank.dispatch(`//127.0.0.1:${other.port}/v1/wires`, context()));
    expect([elsewhere.came, other.visits.length, server.visits.length]).toEqual(["failure", 0, 0]);
    expect((await cameOf(bank.dispatch("wires", context()))).came).toBe("success");
  });

  it.each([301, 302, 303, 307, 308])("does not follow a redirect (%i)", async (status) => {
    const inside = await serve(({ socket }) => void socket.end(answer(200, "secret")));
    const server = await serve(async ({ socket, whole }) => {
      await whole();
      socket.end(answer(status, "", { location: `http://127.0.0.1:${inside.port}/latest/meta-data` }));
    });
    const bank = httpConnector("bank", { ...wire, url: `http://127.0.0.1:${server.port}/`, allow: ["127.0.0.1"] });
    const { came } = await cameOf(bank.dispatch("wires", context()));
    expect([came, inside.visits.length, server.visits.length]).toEqual([status > 303 ? "failure" : "unknown", 0, 1]);
  });

  it("reports NotSent for a name without addresses", async () => {
    const refusing = httpConnector("a", { ...wire, resolve: () => Promise.reject(new Error("ENOTFOUND no.test")) });
    const empty = httpConnector("b", { ...wire, resolve: async () => [] });
    for (const hook of [refusing, empty]) {
      expect((await cameOf(hook.dispatch("http://no.test/", context()))).error).toBeInstanceOf(NotSent);
    }
  });
});
