import { describe, expect, it } from "vitest";
import { attackTarget } from "./target.ts";

/** An unauthenticated request line and headers, up to the 16 KiB that Node accepts: their cost must not be quadratic. */
describe("costly headers", { timeout: 300_000 }, () => {
  const target = attackTarget("sqlite");

  const headers = [
    ["spaces", `gzip${" ".repeat(14_000)}x`],
    ["digits", `gzip;q=.${"1".repeat(14_000)}x`],
    ["commas", "gzip;q=0,".repeat(1_500)],
  ] as const;
  it.each(headers)("Accept-Encoding with many %s does not stall the server", async (_what, value) => {
    const { call, measured } = target();
    const { result, excess, summary } = await measured(async () => {
      const responses = [];
      for (let k = 0; k < 5; k++)
        responses.push(await call("GET", "/openapi.json", { headers: { "accept-encoding": value } }));
      return responses;
    });
    expect(result.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(excess, summary).toBeLessThan(300);
  });

  it("a query of thousands of fields does not stall the server, on a call without a rate limit", async () => {
    const { raw, measured } = target();
    const letters = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"];
    const fields = letters.flatMap((a) => letters.map((b) => a + b)).join("&");
    const requests = `GET /livez?${fields} HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(20);
    const { result, excess, summary } = await measured(() =>
      raw(`${requests}GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`),
    );
    expect(result.match(/HTTP\/1\.1 400/g)).toHaveLength(20);
    expect(result.length).toBeLessThan(requests.length);
    expect(excess, summary).toBeLessThan(300);
  });

  it("the error for a long query is short", async () => {
    const { call, token } = target();
    const refusal = async (query: string) =>
      (await call("GET", `/v1/runs?${query}`, { token: token("acme", "reader") })).text;
    expect(await refusal("x".repeat(14_000))).toMatch(/TAPE_BAD_INPUT/);
    for (const query of [
      "x".repeat(14_000),
      `${"x".repeat(7_000)}=1&${"x".repeat(7_000)}=2`,
      `limit=${"9".repeat(14_000)}`,
    ]) {
      expect((await refusal(query)).length).toBeLessThan(1_000);
    }
  });
});
