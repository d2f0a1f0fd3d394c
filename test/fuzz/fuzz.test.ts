import { Agent, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, inject, it } from "vitest";
import { z } from "zod";
import { routes } from "../../src/protocol/contract.ts";
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

/** By the one request that did it, out of those that were sent with it. */
const shows = ({ rule, shots }: Finding, weakness: Weakness): boolean =>
  rule === weakness.rule && shots.length === 1 && shots[0]!.route === weakness.route;

const shortRounds = 4;
/** More than it takes, by a multiple; a weakness that is not found by then is not found. */
const patience = 40;

describe("the fuzzer", () => {
  it.each(backends)("finds nothing in a short look at %s", async (backend) => {
    const { findings, census } = await fuzz(backend, { seed: "suite", enough: (rounds) => rounds === shortRounds });
    expect(findings).toEqual([]);
    expect(census.judgedLooks).toBeGreaterThan(1);
    expect(census.requests).toBeGreaterThan(100);
    for (const outcome of ["accepted", "read", "refused"] as const)
      expect(census.of(outcome), outcome).toBeGreaterThan(0);
  });

  it("finds each weakness that is planted in the server", async () => {
    const missing = (found: readonly Finding[]) =>
      weaknesses.filter((weakness) => !found.some((one) => shows(one, weakness))).map(({ name }) => name);
    const { findings } = await fuzz("sqlite", {
      ...planted(weaknesses),
      enough: (rounds, found) => rounds === patience || missing(found).length === 0,
    });
    expect(missing(findings)).toEqual([]);
  });

  it("finds a request that ends the server", async () => {
    const { findings } = await fuzz("sqlite", { ...planted([crash]), enough: (rounds) => rounds === patience });
    expect(findings.map(({ rule }) => rule)).toEqual(["crash"]);
    expect(findings[0]!.words).toContain("planted");
  });

  describe("and what only the holder of a lease may know", () => {
    const [mine, theirs] = ["7012345678901234", "7112345678901234"];
    const body = JSON.stringify({ nonce: mine, padding: "f".repeat(2 ** 21) });
    const chunks = (bytes: Buffer): string => [...bytes.toString("latin1")].map((one) => `1\r\n${one}\r\n`).join("");
    const head = "POST /v1/store/find HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    const call: Shot = {
      sender: { tenant: "acme", role: "worker" },
      ...{ method: "POST", target: "/v1/store/find", headers: {} },
    };
    const small = Buffer.from(JSON.stringify({ nonce: mine }));
    const raw = (text: string): Shot => ({ ...call, raw: Buffer.from(text, "latin1").toString("base64") });
    const leaks = (shot: Shot, nonce: string): number => {
      const hidden = [mine, theirs].map((text) => ({ text, what: "the nonce of a lease" }));
      const reply = { status: 200, headers: {}, text: `{"nonce":"${nonce}"}`, whole: true, timedOut: false };
      return judge(shot, [reply], hidden).findings.filter(({ rule }) => rule === "leak").length;
    };

    it.each<[string, Shot]>([
      ["as it is", { ...call, body: { text: body } }],
      ["packed", { ...call, body: { base64: gzipSync(body).toString("base64") } }],
      ["on a socket", raw(`${head}${small.toString()}`)],
      ["in chunks of a byte", raw(`${head}${chunks(small)}0\r\n\r\n`)],
      ["packed in chunks of a byte", raw(`${head}${chunks(gzipSync(small))}0\r\n\r\n`)],
    ])("knows the nonce that it sent %s, and finds every other one", (_how, shot) => {
      expect(leaks(shot, mine)).toBe(0);
      expect(leaks(shot, theirs)).toBe(1);
    });

    it("sends it only as a nonce, so that it is in nobody's value or name", () => {
      const chance = new Chance("nonces");
      const own = new Pool("hush-");
      const fence = { journal: 7, token: "3", nonce: mine };
      own.take({ ok: true, term: { fence, journal: 7, kind: "run", run: 7, name: "sweeper" }, value: 3, key: "k" });
      let sent = 0;
      for (const { name, schema } of parts) {
        for (let k = 0; k < 60; k++) {
          const text = jsonText(new Draw({ chance, own, other: own }).of(schema));
          sent += text.split(`"nonce":"${mine}"`).length - 1;
          expect(text.replaceAll(`"nonce":"${mine}"`, ""), name).not.toContain(mine);
        }
      }
      expect(sent).toBeGreaterThan(100);
    });
  });

  it("does not wait for the answer to a request of which it keeps a part back", async () => {
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

  it("finds memory that grows, and none that does not", () => {
    const readings = (grows: number) =>
      Array.from({ length: 40 }, (_, k) => ({ heap: 30e6 + k * grows, outside: 1e6, rss: 150e6 + (k % 5) * 1e6 }));
    expect(memoryFinding(readings(0))).toBeUndefined();
    expect(memoryFinding(readings(1e6))).toMatchObject({ rule: "memory" });
  });
});

describe("what is drawn from a schema", () => {
  it("is what the schema accepts, for every part of every route", () => {
    const own = new Pool("hush-");
    const chance = new Chance("draw");
    for (const { name, schema } of parts) {
      const fits = Array.from({ length: 30 }, () => {
        try {
          return z.safeDecode(schema, JSON.parse(jsonText(new Draw({ chance, own }).of(schema))) as never).success;
        } catch {
          return false; // a value of the user's that is no JSON, or an envelope that the codec refuses
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
