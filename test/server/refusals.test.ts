import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../testkit/clock.ts";
import { bigintText } from "../../testkit/conformance/frame.ts";
import { requestOf } from "./samples.ts";
import { makeScene, type Scene, tokenOf } from "./scene.ts";
import { ask, bootstrap, type Stage, stage } from "./stage.ts";

let folder: string;
let current: Stage;
let scene: Scene;

const clock = new ManualClock();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tape-server-"));
  const limits = { bodyBytes: 4_096, ratePerSecond: 1, rateBurst: 1_000 };
  current = await stage({ credentials: "required", url: `sqlite:${join(folder, "t.db")}`, clock, limits });
  scene = await makeScene(current.store, "acme");
});
beforeEach(() => clock.elapse(1_000_000)); // the buckets are full again
afterAll(async () => {
  await current.close();
  rmSync(folder, { recursive: true });
});

/** Every row of every table, but for the commits' own witnesses and for when a token was last used. */
function dump(): string[] {
  const db = new DatabaseSync(join(folder, "t.db"), { readOnly: true });
  try {
    const tables = db.prepare("select name from sqlite_schema where type = 'table' and name <> 'witness'").all();
    return tables.flatMap(({ name }) => {
      const statement = db.prepare(`select * from "${String(name)}"`);
      statement.setReadBigInts(true); // tokens and nonces have 63 bits
      return statement.all().map(({ used_at: _used, ...row }) => `${String(name)} ${JSON.stringify(row, bigintText)}`);
    });
  } finally {
    db.close();
  }
}

const token = tokenOf("acme", "admin");
const start = { id: "new", workflow: "pay", input: 1 };
const nested = (levels: number): string => `${"[".repeat(levels)}1${"]".repeat(levels)}`;

/** What is sent, raw, to POST /v1/runs. */
async function send(body: string | Uint8Array | undefined, headers: Record<string, string> = {}, url = "/v1/runs") {
  const answer = await current.server.exchange({
    ...{ method: "POST", url },
    headers: { "content-type": "application/json", authorization: `Bearer ${token}`, ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? new TextEncoder().encode(body) : body }),
  });
  return {
    status: answer.status,
    headers: answer.headers,
    json: JSON.parse(new TextDecoder().decode(answer.body as Uint8Array)) as Record<string, unknown>,
  };
}

type Case = readonly [
  what: string,
  status: number,
  code: string,
  words: RegExp,
  body: string | Uint8Array | undefined,
  headers?: Record<string, string>,
];

const text = (json: unknown): string => JSON.stringify(json);
const cases: readonly Case[] = [
  ["no body", 400, "TAPE_BAD_INPUT", /body: is missing/, undefined],
  ["another content type", 400, "TAPE_BAD_INPUT", /content-type/, text(start), { "content-type": "text/plain" }],
  ["broken JSON", 400, "TAPE_BAD_INPUT", /body: is not valid JSON/, '{"workflow": "canary-secret'],
  ["bytes that are no UTF-8", 400, "TAPE_BAD_INPUT", /UTF-8/, new Uint8Array([0x22, 0xff, 0x22])],
  ["an unknown field", 400, "TAPE_BAD_INPUT", /body: .*inputs/, text({ ...start, inputs: 1 })],
  ["a wrong type", 400, "TAPE_BAD_INPUT", /body\.workflow: /, text({ ...start, workflow: 7 })],
  ["a field that is missing", 400, "TAPE_BAD_INPUT", /body\.workflow: /, text({ id: "new" })],
  ["a tenant in the body", 400, "TAPE_BAD_INPUT", /tenant/, text({ ...start, tenant: "globex" })],
  [
    "a value that is none of the codec's",
    400,
    "TAPE_BAD_INPUT",
    /body: .*date/,
    text({ ...start, input: { $codec: 1, data: "x", types: { "": "date" } } }),
  ],
  ["nesting", 400, "TAPE_BAD_INPUT", /nested too deep/, `{"id":"new","workflow":"w","input":${nested(64)}}`],
  ["__proto__", 400, "TAPE_BAD_INPUT", /__proto__/, '{"id":"new","workflow":"w","input":{"__proto__":{"admin":true}}}'],
  [
    "an escaped __proto__",
    400,
    "TAPE_BAD_INPUT",
    /__proto__/,
    '{"id":"new","workflow":"w","input":{"\\u005f_proto__":1}}',
  ],
  ["constructor", 400, "TAPE_BAD_INPUT", /constructor/, '{"id":"new","workflow":"w","input":[{"constructor":{}}]}'],
  ["too many bytes", 413, "TAPE_TOO_LARGE", /at most 4096/, text({ ...start, input: "x".repeat(5_000) })],
  [
    "a gzip bomb",
    413,
    "TAPE_TOO_LARGE",
    /at most 4096/,
    gzipSync(text({ ...start, input: "x".repeat(1_000_000) })),
    { "content-encoding": "gzip" },
  ],
  ["gzip that is none", 400, "TAPE_BAD_INPUT", /gzip/, "no", { "content-encoding": "gzip" }],
  ["an encoding that is unknown", 400, "TAPE_BAD_INPUT", /content-encoding/, text(start), { "content-encoding": "br" }],
  ["a name that is too long", 400, "TAPE_BAD_INPUT", /body\.id/, text({ ...start, id: "x".repeat(513) })],
  [
    "an Idempotency-Key that is none",
    400,
    "TAPE_BAD_INPUT",
    /Idempotency-Key/,
    text(start),
    { "idempotency-key": "a b" },
  ],
  [
    "a foreign origin",
    403,
    "TAPE_FORBIDDEN",
    /another origin/,
    text(start),
    { host: "tape.example", origin: "https://evil.example" },
  ],
  ["a page of another site", 403, "TAPE_FORBIDDEN", /another origin/, text(start), { "sec-fetch-site": "cross-site" }],
  ["no credential", 401, "TAPE_UNAUTHENTICATED", /no credential/, text(start), { authorization: undefined as never }],
  ["another scheme", 401, "TAPE_UNAUTHENTICATED", /id\.secret/, text(start), { authorization: `Basic ${bootstrap}` }],
  [
    "a forged secret",
    401,
    "TAPE_UNAUTHENTICATED",
    /no such token/,
    text(start),
    { authorization: `Bearer acme-admin.${"y".repeat(43)}` },
  ],
  [
    "a forged id",
    401,
    "TAPE_UNAUTHENTICATED",
    /no such token/,
    text(start),
    { authorization: `Bearer missing.${"x".repeat(43)}` },
  ],
  [
    "the stored hash as a secret",
    401,
    "TAPE_UNAUTHENTICATED",
    /no such token/,
    text(start),
    { authorization: `Bearer acme-admin.${"0".repeat(64)}` },
  ],
];

describe("a rejected request leaves no row", () => {
  for (const [what, status, code, words, body, headers] of cases) {
    it(what, async () => {
      const before = dump();
      const answer = await send(body, headers);
      expect({ status: answer.status, code: answer.json.code }).toEqual({ status, code });
      expect(answer.json.detail).toMatch(words);
      expect(answer.headers["content-type"]).toBe("application/problem+json");
      expect(answer.json).toMatchObject({ status, title: code, next: expect.any(String) as string });
      expect(JSON.stringify(answer.json)).not.toContain("canary-secret");
      expect(dump()).toEqual(before);
    });
  }

  it("except that allowed nesting is accepted", async () => {
    expect((await send(`{"id":"deep","workflow":"w","input":${nested(63)}}`)).status).toBe(200);
  });

  it("for an invalid query", async () => {
    const requested = async (url: string) => (await ask(current.server.exchange, "GET", url, { token })).json;
    expect(await requested("/v1/runs?limit=ten")).toMatchObject({
      code: "TAPE_BAD_INPUT",
      details: { field: "query.limit" },
    });
    expect(await requested("/v1/runs?limit=1&limit=2")).toMatchObject({ code: "TAPE_BAD_INPUT" });
    expect(await requested("/v1/runs?tenant=globex")).toMatchObject({ code: "TAPE_BAD_INPUT" });
    expect(await requested("/v1/whoami?tenant=globex")).toMatchObject({ code: "TAPE_BAD_INPUT" });
    expect(await requested("/v1/runs/%ff")).toMatchObject({ code: "TAPE_BAD_INPUT" });
  });

  it("for an unknown path or method", async () => {
    for (const [method, url] of [
      ["GET", "/v1/secrets"],
      ["DELETE", "/v1/runs/x"],
      ["GET", "/v1/runs/"],
      ["GET", "//v1/runs"],
    ]) {
      const { status, json } = await ask(current.server.exchange, method!, url!, { token });
      expect(status, url).toBe(404);
      expect(json).toMatchObject({ code: "TAPE_NO_ROUTE" });
    }
  });

  it("over the rate limit, with Retry-After", async () => {
    for (let k = 0; k < 1_000; k++) await ask(current.server.exchange, "GET", "/v1/whoami", { token });
    const before = dump();
    const answer = await send(text(start));
    expect(answer).toMatchObject({ status: 429, json: { code: "TAPE_RATE_LIMITED" } });
    expect(answer.headers["retry-after"]).toBe("2"); // a token has three quarters of its tenant's rate
    expect(dump()).toEqual(before);
    // Another token of the tenant has what is left, but for its renewals, which nothing else can use up.
    const colleague = { token: tokenOf("acme", "worker") };
    for (let k = 0; k < 250; k++)
      expect((await ask(current.server.exchange, "GET", "/v1/whoami", colleague)).status).toBe(200);
    expect((await ask(current.server.exchange, "GET", "/v1/whoami", colleague)).status).toBe(429);
    const { method, url, body } = requestOf("store.renew", scene);
    expect((await ask(current.server.exchange, method, url, { ...colleague, body })).status).toBe(200);
    // Another tenant has a bucket of its own.
    expect((await ask(current.server.exchange, "GET", "/v1/whoami", { token: bootstrap })).status).toBe(200);
  });

  it("and logs code, route, tenant and token, but no secret or body", async () => {
    current.lines.length = 0;
    await send(text({ ...start, inputs: "canary-secret" }));
    await send(text(start), { authorization: `Bearer acme-admin.${"y".repeat(43)}` });
    expect(current.lines).toEqual([
      {
        ...{ level: "info", event: "server.refused" },
        fields: { code: "TAPE_BAD_INPUT", route: "runs.start", tenant: "acme", token: "acme-admin" },
      },
      {
        ...{ level: "info", event: "server.refused" },
        fields: { code: "TAPE_UNAUTHENTICATED", route: "runs.start", tenant: undefined, token: undefined },
      },
    ]);
  });
});

describe("a repeated request", () => {
  it("gets the first response and writes nothing", async () => {
    const key = { "idempotency-key": "k-1" };
    const body = text({ workflow: "pay", input: 1 });
    const first = await send(body, key);
    expect(first.json).toMatchObject({ id: "k-1", fresh: true });
    const after = dump();
    const again = await send(body, key);
    expect(again.json).toEqual(first.json);
    expect(dump()).toEqual(after);
  });

  it("is refused if its key named a different call", async () => {
    const key = { "idempotency-key": "k-2" };
    await send(text({ workflow: "pay", input: 1 }), key);
    const after = dump();
    expect(await send(text({ workflow: "pay", input: 2 }), key)).toMatchObject({
      ...{ status: 422, json: { code: "TAPE_KEY_REUSED" } },
    });
    const other = await send(text({ name: "cfo", value: 1 }), key, `/v1/runs/${scene.idle}/signals`);
    expect(other.json).toMatchObject({ code: "TAPE_KEY_REUSED" });
    expect(dump()).toEqual(after);
  });

  it("with a signal's key is one signal", async () => {
    const url = `/v1/runs/${scene.idle}/signals`;
    const key = { "idempotency-key": "k-3" };
    const first = await send(text({ name: "cfo", value: 1 }), key, url);
    expect((await send(text({ name: "cfo", value: 1 }), key, url)).json).toEqual(first.json);
    expect(await current.store.read.journal("acme", { run: scene.idle }, { inbox: true })).toHaveLength(1);
  });

  it("of an answer that must match the open gate is refused as stale, and writes nothing", async () => {
    const before = dump();
    const body = text({ name: "cfo", value: 1, binds: "another call", mustMatch: true });
    const answer = await send(body, {}, `/v1/runs/${scene.idle}/signals`);
    expect(answer).toMatchObject({ status: 409, json: { code: "TAPE_GATE_STALE", details: { gate: "cfo" } } });
    expect(dump()).toEqual(before);
  });

  it("does not return a token's secret again, and creates no second token", async () => {
    const { body, url } = requestOf("tokens.create", scene);
    const key = { "idempotency-key": "k-4" };
    const first = await send(text(body), key, url);
    expect(first.json).toMatchObject({ secret: expect.stringMatching(/^[\w-]+\.[\w-]{43}$/) as string });
    expect(await send(text(body), key, url)).toMatchObject({ status: 422, json: { code: "TAPE_KEY_REUSED" } });
    expect((await current.store.read.tokens("acme")).filter(({ name }) => name === "ci")).toHaveLength(1);
    expect(dump().join()).not.toContain(String(first.json.secret).split(".")[1]);
  });
});
