import { Agent, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, inject, it } from "vitest";
import { z } from "zod";
import { routes } from "../../src/protocol/contract.ts";
import type { Census } from "../../tools/fuzz/census.ts";
import { Chance } from "../../tools/fuzz/chance.ts";
import { Draw } from "../../tools/fuzz/draw.ts";
import { memoryFinding } from "../../tools/fuzz/drift.ts";
import { Fuzzer, type FuzzOptions, type FuzzReport } from "../../tools/fuzz/fuzz.ts";
import { jsonText } from "../../tools/fuzz/json.ts";
import { type Finding, judge } from "../../tools/fuzz/judge.ts";
import { Pool } from "../../tools/fuzz/pool.ts";
import { send } from "../../tools/fuzz/send.ts";
import type { Shot } from "../../tools/fuzz/shot.ts";
import { type Backend, backends, freshStore } from "../attacks/open-target.ts";
import { crash, type Weakness, weaknesses } from "./weaknesses.ts";

async function fuzz(backend: Backend, options: Omit<FuzzOptions, "store">): Promise<FuzzReport> {
  const { url, clear } = await freshStore(backend, () => inject("postgres18"));
  try {
    return await Fuzzer.run({ store: url, ...options });
  } finally {
    await clear();
  }
}

const planted = (some: readonly Weakness[]) => ({
  seed: "holes",
  maxFindings: 40, // one weakness may show as several
  only: some.map(({ route }) => route),
  patches: some.map(({ patch }) => patch),
});

const parts = routes.flatMap((route) =>
  (["params", "query", "body"] as const).flatMap((part) => {
    const schema: z.ZodType | undefined = route[part];
    return schema === undefined ? [] : [{ name: `${route.name} ${part}`, schema }];
  }),
);

/** The finding names only the one request that caused it. */
const shows = ({ rule, shots }: Finding, weakness: Weakness): boolean =>
  rule === weakness.rule && shots.length === 1 && shots[0]!.route === weakness.route;

const shortRounds = 4;
/** The rarest weakness shows in one round of seventeen, so a fuzz run that can find it needs at most this many. */
const patience = 400;

describe("the fuzzer", () => {
  it.each(backends)("finds nothing in a short run on %s", async (backend) => {
    // The draws follow the responses, so the requests of a round differ from one fuzz run to the next.
    const shown = (census: Census): Record<string, boolean> => ({
      requests: census.requests > 100,
      tables: census.judgedTableChecks > 1,
      ...Object.fromEntries((["accepted", "read", "rejected"] as const).map((one) => [one, census.of(one) > 0])),
    });
    const { findings, census } = await fuzz(backend, {
      seed: "suite",
      enough: (rounds, _findings, soFar) =>
        rounds === patience || (rounds >= shortRounds && Object.values(shown(soFar)).every(Boolean)),
    });
    expect(findings).toEqual([]);
    expect(shown(census)).toEqual({ requests: true, tables: true, accepted: true, read: true, rejected: true });
  });

  it("finds each weakness planted in the server", async () => {
    const missing = (found: readonly Finding[]) =>
      weaknesses.filter((weakness) => !found.some((finding) => shows(finding, weakness))).map(({ name }) => name);
    const { findings } = await fuzz("sqlite", {
      ...planted(weaknesses),
      enough: (rounds, found) => rounds === patience || missing(found).length === 0,
    });
    expect(missing(findings)).toEqual([]);
  });

  it("finds a request that ends the server", async () => {
    const { findings } = await fuzz("sqlite", { ...planted([crash]), enough: (rounds) => rounds === patience });
    expect(findings.map(({ rule }) => rule)).toEqual(["crash"]);
    expect(findings[0]!.message).toContain("planted");
  });

  describe("with the nonce of a lease", () => {
    const [ownNonce, otherNonce] = ["7012345678901234", "7112345678901234"];
    const body = JSON.stringify({ nonce: ownNonce, padding: "f".repeat(2 ** 21) });
    const chunks = (bytes: Buffer): string => [...bytes.toString("latin1")].map((one) => `1\r\n${one}\r\n`).join("");
    const head = "POST /v1/store/find HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    const call: Shot = {
      sender: { tenant: "acme", role: "worker" },
      ...{ method: "POST", target: "/v1/store/find", headers: {} },
    };
    const small = Buffer.from(JSON.stringify({ nonce: ownNonce }));
    const raw = (text: string): Shot => ({ ...call, raw: Buffer.from(text, "latin1").toString("base64") });
    const leaks = (shot: Shot, nonce: string): number => {
      const hidden = [ownNonce, otherNonce].map((text) => ({ text, what: "the nonce of a lease" }));
      const reply = { status: 200, headers: {}, text: `{"nonce":"${nonce}"}`, whole: true, timedOut: false };
      return judge(shot, [reply], hidden).findings.filter(({ rule }) => rule === "leak").length;
    };

    it.each<[string, Shot]>([
      ["in plain text", { ...call, body: { text: body } }],
      ["compressed", { ...call, body: { base64: gzipSync(body).toString("base64") } }],
      ["on a socket", raw(`${head}${small.toString()}`)],
      ["in chunks of a byte", raw(`${head}${chunks(small)}0\r\n\r\n`)],
      ["compressed in chunks of a byte", raw(`${head}${chunks(gzipSync(small))}0\r\n\r\n`)],
    ])("accepts the nonce that it sent %s, and finds every other one", (_how, shot) => {
      expect(leaks(shot, ownNonce)).toBe(0);
      expect(leaks(shot, otherNonce)).toBe(1);
    });

    it("sends it only as a nonce, never as a value or a name", () => {
      const chance = new Chance("nonces");
      const own = new Pool("hush-");
      const fence = { journal: 7, token: "3", nonce: ownNonce };
      own.take({ ok: true, term: { fence, journal: 7, kind: "run", run: 7, name: "sweeper" }, value: 3, key: "k" });
      let sent = 0;
      for (const { name, schema } of parts) {
        for (let k = 0; k < 60; k++) {
          const text = jsonText(new Draw({ chance, own, other: own }).of(schema));
          sent += text.split(`"nonce":"${ownNonce}"`).length - 1;
          expect(text.replaceAll(`"nonce":"${ownNonce}"`, ""), name).not.toContain(ownNonce);
        }
      }
      expect(sent).toBeGreaterThan(100);
    });
  });

  it("does not wait for the response to an incomplete request", async () => {
    const silent = createServer((request) => void request.resume());
    await new Promise<void>((ready) => silent.listen(0, "127.0.0.1", ready));
    const { port } = silent.address() as AddressInfo;
    const agent = new Agent();
    try {
      const headers = { "content-length": "1" };
      const shot: Shot = { sender: { tenant: "acme", role: "admin" }, method: "POST", target: "/v1/quotas", headers };
      expect(await send(shot, port, agent)).toMatchObject([{ status: 0, timedOut: false }]);
    } finally {
      agent.destroy();
      silent.close();
    }
  });

  it("finds growing memory only", () => {
    const readings = (grows: number) =>
      Array.from({ length: 40 }, (_, k) => ({ heap: 30e6 + k * grows, outside: 1e6, rss: 150e6 + (k % 5) * 1e6 }));
    expect(memoryFinding(readings(0))).toBeUndefined();
    expect(memoryFinding(readings(1e6))).toMatchObject({ rule: "memory" });
  });
});

describe("a draw from a schema", () => {
  it("is accepted by the schema, for every part of every route", () => {
    const own = new Pool("hush-");
    const chance = new Chance("draw");
    for (const { name, schema } of parts) {
      const fits = Array.from({ length: 30 }, () => {
        try {
          return z.safeDecode(schema, JSON.parse(jsonText(new Draw({ chance, own }).of(schema))) as never).success;
        } catch {
          return false; // a user's value that is no JSON, or an envelope that the codec rejects
        }
      });
      expect(fits.filter(Boolean).length, name).toBeGreaterThan(5);
    }
  });

  it("is the same for the same seed", () => {
    const drawn = (seed: string) => {
      const chance = new Chance(seed);
      return parts.map(({ schema }) => jsonText(new Draw({ chance, own: new Pool("hush-") }).of(schema)));
    };
    expect(drawn("1")).toEqual(drawn("1"));
    expect(drawn("1")).not.toEqual(drawn("2"));
  });
});
