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

describe("what an answer says about the act", () => {
  it("the written table has every verdict and is what a real server's answers come to", async () => {
    const rows = written();
    expect(new Set(rows.map(([, verdict]) => verdict))).toEqual(new Set(["success", "doubt", "failure", "not_sent"]));
    expect(rows.length).toBeGreaterThan(50);
    const { bank, server } = await bankThat((n) => answer(rows[n - 1]![0], rows[n - 1]![0] === 204 ? "" : "words"));
    for (const [status, verdict] of rows) {
      expect([status, (await cameOf(bank.dispatch({}, context()))).came]).toEqual([status, verdict]);
    }
    expect(server.visits).toHaveLength(rows.length);
  });

  it("every status but those of the table leaves doubt; a request that reads has done nothing when it is sent on", () => {
    const known = new Map(written());
    for (let status = 100; status < 600; status++) {
      const other = status >= 200 && status < 300 ? "success" : "doubt";
      expect([status, verdictOn("POST", status)]).toEqual([status, known.get(status) ?? other]);
    }
    for (const status of [300, 301, 302, 303, 304, 307, 308]) expect(verdictOn("GET", status)).toBe("failure");
    expect(verdictOn("GET", 500)).toBe("doubt");
  });

  it("for which attempts a failure speaks is written, too", async () => {
    const page = readFileSync(new URL("../../docs/connectors.md", import.meta.url), "utf8");
    const [, list = ""] = /Then (\d{3}[\d, and]*) still settle an idempotent effect/.exec(page) ?? [];
    const considered = new Set(list.match(/\d{3}/g)!.map(Number));
    const failures = written().filter(([, verdict]) => verdict === "failure");
    const { bank } = await bankThat((n) => answer(failures[n - 1]![0]));
    for (const [status] of failures) {
      const { error } = await cameOf(bank.dispatch({}, context()));
      expect([status, (error as DefiniteFailure).about]).toEqual([status, considered.has(status) ? "key" : "attempt"]);
    }
    expect(considered.size).toBe(7);
  });

  it("the result is the body: JSON where the server says so, else text; or what `result` makes of it", async () => {
    const says = [answer(200, ...json({ id: 1 })), answer(201, "plain"), answer(200, ...json({ id: 2 }))];
    const { bank } = await bankThat((n) => says[n - 1]!);
    expect(await bank.dispatch({}, context())).toEqual({ id: 1 });
    expect(await bank.dispatch({}, context())).toBe("plain");
    const shaped = await bankThat(() => says[2]!, { result: ({ body }: { body: { id: number } }) => `#${body.id}` });
    expect(await shaped.bank.dispatch({}, context())).toBe("#2");
  });

  it("a success whose body cannot be read has happened all the same: doubt, never failure", async () => {
    const says = [
      answer(200, "{", { "content-type": "application/json" }),
      answer(200, "x", { "content-encoding": "gzip" }),
      answer(200, "x".repeat(101)),
    ];
    const { bank } = await bankThat((n) => says[n - 1]!, { maxAnswerBytes: 100 });
    const came = [];
    for (const _ of says) came.push(await cameOf(bank.dispatch({}, context())));
    expect(came.map((one) => one.came)).toEqual(["doubt", "doubt", "doubt"]);
    expect(came.map((one) => one.message.split("; ")[1])).toEqual([
      "the answer is not the JSON that it claims to be",
      "the answer is encoded as gzip",
      "the answer is longer than 100 bytes",
    ]);
    const broken = await bankThat(() => answer(200, "x"), {
      result: () => {
        throw new Error("cannot read");
      },
    });
    expect((await cameOf(broken.bank.dispatch({}, context()))).error).toBeInstanceOf(AckLost);
  });

  it("`judge` overrules the table; one that throws leaves doubt", async () => {
    const judge = ({ status }: { status: number }) => {
      if (status === 418) throw new Error("no idea");
      return status === 202 ? "success" : undefined;
    };
    const says = [202, 422, 418];
    const { bank } = await bankThat((n) => answer(says[n - 1]!, "x"), { judge });
    const came = [];
    for (const _ of says) came.push((await cameOf(bank.dispatch({}, context()))).came);
    expect(came).toEqual(["success", "failure", "doubt"]);
  });

  it("Retry-After: seconds, a date, nonsense, too long", async () => {
    const clock = new ManualClock({ wall: Date.parse("2026-11-15T12:00:00Z") });
    const said = ["7", "Sun, 15 Nov 2026 12:00:30 GMT", "soon", "999999", "Sun, 15 Nov 2020 12:00:00 GMT"];
    const { bank } = await bankThat((n) => answer(429, "", { "retry-after": said[n - 1]! }), { clock });
    const asked = [];
    for (const _ of said) asked.push((((await cameOf(bank.dispatch({}, context()))).error ?? {}) as NotSent).afterMs);
    expect(asked).toEqual([7_000, 30_000, undefined, 3_600_000, 0]);
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

  it("an encoded slash alone is a key's own, and is sent", async () => {
    const path = encodeURIComponent("orders/7:0");
    const { bank, server } = await bankThat(() => answer(200, "ok"), { request: () => ({ url: path, body: {} }) });
    expect(await bank.dispatch({}, context())).toBe("ok");
    expect(server.visits[0]!.text()).toMatch(/^POST \/orders%2F7%3A0 /);
  });

  it("messages hold neither the query nor endless bodies", async () => {
    const { bank } = await bankThat(() => answer(422, "y".repeat(5_000)), {
      request: () => ({ url: "wires?token=hush", body: {} }),
    });
    const { message } = await cameOf(bank.dispatch({}, context()));
    expect(message).toMatch(/^POST http:\/\/127\.0\.0\.1:\d+\/wires answered 422: y+$/);
    expect(message.length).toBeLessThan(400);
  });
});

describe("looks and inverses by HTTP", () => {
  it("observe reads the answer as it is told; what it cannot hear is an error, which tells nothing", async () => {
    const says = [answer(200, ...json({ id: 1 })), answer(404), answer(200, "x", { "content-length": "9" })];
    const { bank, server } = await bankThat((n) => says[n - 1]!, {
      observe: {
        request: (_: unknown, fx: { key: string }) => ({ method: "GET", url: `wires/${encodeURIComponent(fx.key)}` }),
        read: ({ status, body }: { status: number; body: unknown }) => ({ observed: `${status}`, value: body }),
      },
    });
    expect(await bank.observe!({}, context())).toEqual({ observed: "200", value: { id: 1 } });
    expect(await bank.observe!({}, context())).toEqual({ observed: "404", value: "" });
    expect((await cameOf(bank.observe!({}, context()))).came).toBe("doubt");
    expect(server.visits[0]!.text()).toMatch(/^GET \/wires\/run-1%3A0 HTTP\/1\.1\r\n/);
    expect(server.visits[0]!.text()).not.toMatch(/content-length/i);
  });

  it("compensate is an act with the same table, and may be observed itself", async () => {
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
    expect(await run({}, { id: 4 }, context({ key: "run-1:0:inverse" }))).toBe("undone");
    expect((await cameOf(run({}, { id: 4 }, context()))).came).toBe("failure");
    expect(await observe!({ args: {}, result: { id: 4 } }, context())).toEqual({
      observed: "confirmed",
      value: "seen",
    });
    expect(server.visits[0]!.text()).toMatch(/^DELETE \/wires\/4 [\s\S]*idempotency-key: run-1:0:inverse/);
  });
});
