import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { httpConnector } from "../../src/connector/http/connector.ts";
import { verdictOn } from "../../src/connector/http/verdict.ts";
import { AckLost, type DefiniteFailure, type NotSent } from "../../src/sdk/outcomes.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { answer, cameOf, context, json, serve } from "./server.ts";

/** The rows of the written table that are about a status. */
function written(): [status: number, verdict: string][] {
  const page = readFileSync(new URL("../../docs/connectors.md", import.meta.url), "utf8");
  return [...page.matchAll(/^\| (\d{3}(?:, \d{3})*) \| (\w+) \|/gm)].flatMap(([, list, verdict]) =>
    list!.split(", ").map((status) => [Number(status), verdict!] as [number, string]),
  );
}

async function bankThat(says: (n: number) => string, more: object = {}) {
  const server = await serve(async (visit) => {
    await visit.whole();
    visit.socket.end(says(server.visits.length));
  });
  const url = `http://127.0.0.1:${server.port}/`;
  const request = (args: unknown) => ({ url: "wires", body: args });
  return { server, bank: httpConnector("bank", { url, request, allow: ["127.0.0.1"], ...more }) };
}

describe("the verdict on a response", () => {
  it("equals the documented table for a real server's responses", async () => {
    const rows = written();
    expect(new Set(rows.map(([, verdict]) => verdict))).toEqual(new Set(["success", "unknown", "failure", "not_sent"]));
    expect(rows.length).toBeGreaterThan(50);
    const { bank, server } = await bankThat((n) => answer(rows[n - 1]![0], rows[n - 1]![0] === 204 ? "" : "words"));
    for (const [status, verdict] of rows) {
      expect([status, (await cameOf(bank.dispatch({}, context()))).came]).toEqual([status, verdict]);
    }
    expect(server.visits).toHaveLength(rows.length);
  });

  it("is unknown for every other status, but failure for a redirected GET", () => {
    const known = new Map(written());
    for (let status = 100; status < 600; status++) {
      const other = status >= 200 && status < 300 ? "success" : "unknown";
      expect([status, verdictOn("POST", status)]).toEqual([status, known.get(status) ?? other]);
    }
    for (const status of [300, 301, 302, 303, 304, 307, 308]) expect(verdictOn("GET", status)).toBe("failure");
    expect(verdictOn("GET", 500)).toBe("unknown");
  });

  it("settles the attempts that the docs name", async () => {
    const page = readFileSync(new URL("../../docs/connectors.md", import.meta.url), "utf8");
    const [, list = ""] = /In that case (\d{3}[\d, and]*) still settle an idempotent effect/.exec(page) ?? [];
    const considered = new Set(list.match(/\d{3}/g)!.map(Number));
    const failures = written().filter(([, verdict]) => verdict === "failure");
    const { bank } = await bankThat((n) => answer(failures[n - 1]![0]));
    for (const [status] of failures) {
      const { error } = await cameOf(bank.dispatch({}, context()));
      expect([status, (error as DefiniteFailure).scope]).toEqual([status, considered.has(status) ? "key" : "attempt"]);
    }
    expect(considered.size).toBe(7);
  });

  it("returns the body as JSON or text, or the value of `result`", async () => {
    const says = [answer(200, ...json({ id: 1 })), answer(201, "plain"), answer(200, ...json({ id: 2 }))];
    const { bank } = await bankThat((n) => says[n - 1]!);
    expect(await bank.dispatch({}, context())).toEqual({ id: 1 });
    expect(await bank.dispatch({}, context())).toBe("plain");
    const shaped = await bankThat(() => says[2]!, { result: ({ body }: { body: { id: number } }) => `#${body.id}` });
    expect(await shaped.bank.dispatch({}, context())).toBe("#2");
  });

  it("is unknown, never failure, for a success with an unreadable body", async () => {
    const says = [
      answer(200, "{", { "content-type": "application/json" }),
      answer(200, "x", { "content-encoding": "gzip" }),
      answer(200, "x".repeat(101)),
    ];
    const { bank } = await bankThat((n) => says[n - 1]!, { maxResponseBytes: 100 });
    const came = [];
    for (const _ of says) came.push(await cameOf(bank.dispatch({}, context())));
    expect(came.map((one) => one.came)).toEqual(["unknown", "unknown", "unknown"]);
    expect(came.map((one) => one.message.split("; ")[1])).toEqual([
      "the response claims to be JSON and is not",
      "the response is encoded as gzip",
      "the response is longer than 100 bytes",
    ]);
    const broken = await bankThat(() => answer(200, "x"), {
      result: () => {
        throw new Error("cannot read");
      },
    });
    expect((await cameOf(broken.bank.dispatch({}, context()))).error).toBeInstanceOf(AckLost);
  });

  it("follows `judge` before the table, and is unknown when `judge` throws", async () => {
    const judge = ({ status }: { status: number }) => {
      if (status === 418) throw new Error("no idea");
      return status === 202 ? "success" : undefined;
    };
    const says = [202, 422, 418];
    const { bank } = await bankThat((n) => answer(says[n - 1]!, "x"), { judge });
    const came = [];
    for (const _ of says) came.push((await cameOf(bank.dispatch({}, context()))).came);
    expect(came).toEqual(["success", "failure", "unknown"]);
  });

  it("reads Retry-After as seconds or a date, and caps it", async () => {
    const clock = new ManualClock({ wall: Date.parse("2026-11-15T12:00:00Z") });
    const headers = ["7", "Sun, 15 Nov 2026 12:00:30 GMT", "soon", "999999", "Sun, 15 Nov 2020 12:00:00 GMT"];
    const { bank } = await bankThat((n) => answer(429, "", { "retry-after": headers[n - 1]! }), { clock });
    const delays = [];
    for (const _ of headers)
      delays.push((((await cameOf(bank.dispatch({}, context()))).error ?? {}) as NotSent).retryAfterMs);
    expect(delays).toEqual([7_000, 30_000, undefined, 3_600_000, 0]);
  });

  it.each(["..%2f..%2fadmin", "..%5cadmin", "%252e%252e%252fadmin", "a%2f..%2f..%2fadmin"])(
    "a path that an upstream could decode into a step up is not sent: %s",
    async (path) => {
      const { bank, server } = await bankThat(() => answer(200, "in"), { request: () => ({ url: path, body: {} }) });
      const { came, message } = await cameOf(bank.dispatch({}, context()));
      expect([came, server.visits.length]).toEqual(["failure", 0]);
      expect(message).toMatch(/leave/);
    },
  );

  it("sends an encoded slash that is part of a key", async () => {
    const path = encodeURIComponent("orders/7:0");
    const { bank, server } = await bankThat(() => answer(200, "ok"), { request: () => ({ url: path, body: {} }) });
    expect(await bank.dispatch({}, context())).toBe("ok");
    expect(server.visits[0]!.text()).toMatch(/^POST \/orders%2F7%3A0 /);
  });

  it("keeps queries and long bodies out of messages", async () => {
    const { bank } = await bankThat(() => answer(422, "y".repeat(5_000)), {
      request: () => ({ url: "wires?token=hush", body: {} }),
    });
    const { message } = await cameOf(bank.dispatch({}, context()));
    expect(message).toMatch(/^POST http:\/\/127\.0\.0\.1:\d+\/wires answered 422: y+$/);
    expect(message.length).toBeLessThan(400);
  });
});

describe("observe and compensate over HTTP", () => {
  it("reads observations with `read`, and throws when the response is incomplete", async () => {
    const says = [answer(200, ...json({ id: 1 })), answer(404), answer(200, "x", { "content-length": "9" })];
    const { bank, server } = await bankThat((n) => says[n - 1]!, {
      observe: {
        request: (_: unknown, fx: { key: string }) => ({ method: "GET", url: `wires/${encodeURIComponent(fx.key)}` }),
        read: ({ status, body }: { status: number; body: unknown }) => ({ observed: `${status}`, value: body }),
      },
    });
    expect(await bank.observe!({}, context())).toEqual({ observed: "200", value: { id: 1 } });
    expect(await bank.observe!({}, context())).toEqual({ observed: "404", value: "" });
    expect((await cameOf(bank.observe!({}, context()))).came).toBe("unknown");
    expect(server.visits[0]!.text()).toMatch(/^GET \/wires\/run-1%3A0 HTTP\/1\.1\r\n/);
    expect(server.visits[0]!.text()).not.toMatch(/content-length/i);
  });

  it("compensates by the same table, and observes a compensation", async () => {
    const says = [answer(200, "undone"), answer(422, "no"), answer(200, "seen")];
    const { bank, server } = await bankThat((n) => says[n - 1]!, {
      compensate: {
        semantics: "idempotent",
        request: (_: unknown, result: { id: number }) => ({ method: "DELETE", url: `wires/${result.id}` }),
        observe: {
          request: ({ result }: { result: { id: number } }) => ({ method: "GET", url: `wires/${result.id}` }),
          read: ({ body }: { body: unknown }) => ({ observed: "confirmed", value: body }),
        },
      },
    });
    const { run, observe, semantics } = bank.compensate!;
    expect(semantics).toBe("idempotent");
    expect(await run({}, { id: 4 }, context({ key: "run-1:0:compensation" }))).toBe("undone");
    expect((await cameOf(run({}, { id: 4 }, context()))).came).toBe("failure");
    expect(await observe!({ args: {}, result: { id: 4 } }, context())).toEqual({
      observed: "confirmed",
      value: "seen",
    });
    expect(server.visits[0]!.text()).toMatch(/^DELETE \/wires\/4 [\s\S]*idempotency-key: run-1:0:compensation/);
  });
});
