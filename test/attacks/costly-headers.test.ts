import { describe, expect, it } from "vitest";
import { groundOf } from "./ground.ts";

/** A stranger's request line and headers, up to the 16 KiB that Node takes: their cost must not grow with their square. */
describe("costly headers", () => {
  const deps = groundOf("sqlite");

  const headers = [
    ["spaces", `gzip${" ".repeat(14_000)}x`],
    ["digits", `gzip;q=.${"1".repeat(14_000)}x`],
    ["commas", "gzip;q=0,".repeat(1_500)],
  ] as const;
  it.each(headers)("Accept-Encoding of many %s stalls nobody", async (_what, value) => {
    const { call, measured } = deps();
    const { result, stall, said } = await measured(async () => {
      const answers = [];
      for (let k = 0; k < 5; k++)
        answers.push(await call("GET", "/openapi.json", { headers: { "accept-encoding": value } }));
      return answers;
    });
    expect(result.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(stall, said).toBeLessThan(8);
  });

  it("a query of thousands of fields stalls nobody, on a call that nobody is paced for", async () => {
    const { raw, measured } = deps();
    const letters = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"];
    const fields = letters.flatMap((a) => letters.map((b) => a + b)).join("&");
    const requests = `GET /livez?${fields} HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(20);
    const { result, stall, said } = await measured(() =>
      raw(`${requests}GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`),
    );
    expect(result.match(/HTTP\/1\.1 400/g)).toHaveLength(20);
    expect(result.length).toBeLessThan(requests.length);
    expect(stall, said).toBeLessThan(8);
  });

  it("what a refusal says of a query is short, however long the query", async () => {
    const { call, token } = deps();
    const asked = async (query: string) =>
      (await call("GET", `/v1/runs?${query}`, { token: token("acme", "reader") })).text;
    expect(await asked("x".repeat(14_000))).toMatch(/TAPE_BAD_INPUT/);
    for (const query of [
      "x".repeat(14_000),
      `${"x".repeat(7_000)}=1&${"x".repeat(7_000)}=2`,
      `limit=${"9".repeat(14_000)}`,
    ]) {
      expect((await asked(query)).length).toBeLessThan(1_000);
    }
  });
});
