import { gzipSync } from "node:zlib";
import { contract, type RouteName, routes } from "../../src/protocol/contract.ts";
import { mayDo, type Role, type Route, roles } from "../../src/protocol/route.ts";
import { jsonType } from "../../src/protocol/transport.ts";
import { type Sample, samples } from "../../test/server/samples.ts";
import { type Scene, tokenOf } from "../../test/server/scene.ts";
import { bootstrap } from "../../test/server/stage.ts";
import type { Chance } from "./chance.ts";
import { Draw } from "./draw.ts";
import { broken, oddTexts, spotsOf, strangeValue } from "./hostile.ts";
import { jsonText, pairsOf, RawJson } from "./json.ts";
import { mustBeRejected } from "./judge.ts";
import type { Pool } from "./pool.ts";
import { rawShot } from "./raw.ts";
import type { Sender, Shot } from "./shot.ts";

/** A tenant that sends requests, and that requests are about. */
export interface TenantSide {
  readonly tenant: string;
  readonly pool: Pool;
  /** Its data at the start of the episode. */
  readonly scene: Scene;
}

/**
 * Purpose of a round. `mixed`: any request by any tenant. `one side`: only one tenant sends, so that every change of the
 * other tenant's rows comes from a stranger. `broken`: calls that read or must be rejected, so nothing may change at all.
 * `one by one`: mostly valid calls, each followed by a check of the tables: a call that the store rejects must have changed
 * nothing.
 */
export type Mode = "mixed" | "one side" | "broken" | "one by one";

export interface ComposeOptions {
  readonly chance: Chance;
  readonly sides: readonly [TenantSide, TenantSide];
  /** Whether one tenant sends values that the other has seen. */
  readonly crossing: boolean;
  readonly mode: Mode;
  /** Only these routes. Default: all. */
  readonly only?: readonly RouteName[] | undefined;
}

type NamedRoute = (typeof routes)[number];

/** Calls that change something are twice as frequent as reads. */
const weightedRoutes = routes.flatMap((route) => (route.repeat === "read" ? [route] : [route, route]));

const changing = routes.filter((route) => route.repeat !== "read");
const routesNamed = (names: readonly RouteName[]) => routes.filter(({ name }) => names.includes(name));

/** Maximum draws until a request must be rejected or only reads; usually the first one does. */
const maxBrokenDraws = 8;

export function compose(options: ComposeOptions): Shot {
  if (options.mode !== "broken") return draw(options);
  for (let k = 0; k < maxBrokenDraws; k++) {
    const shot = draw(options);
    if (shot.raw === undefined && (isRead(shot) || mustBeRejected(shot))) return shot;
  }
  const { headers: _headers, ...shot } = draw(options);
  return { ...shot, headers: {}, sender: { tenant: undefined, role: "none" } };
}

const isRead = ({ route, broken: how }: Shot): boolean =>
  how === undefined && route !== undefined && (contract[route] as Route).repeat === "read";

/** One request: usually drawn from the schemas of a route, then broken in no, one or several ways. */
function draw({ chance, sides, crossing, only, mode }: ComposeOptions): Shot {
  const [own, other] = mode === "one side" || chance.maybe(0.5) ? sides : ([sides[1], sides[0]] as const);
  const candidates = only === undefined ? (mode === "one by one" ? changing : weightedRoutes) : routesNamed(only);
  const route = chance.oneOf(candidates);
  const valid = mode === "one by one";
  const mustBreak = mode === "broken" && route.repeat !== "read";
  const insufficient = roles.filter((role) => route.role !== "open" && !mayDo(role, route.role));
  const demoted = mustBreak && insufficient.length > 0 && chance.maybe(0.3);
  const sender = demoted
    ? { tenant: own.tenant, role: chance.oneOf(insufficient) }
    : senderOf(chance, own.tenant, route, mode);
  const breakBody = mustBreak && !demoted;
  const how: string[] = [];
  const scene = crossing && chance.maybe(0.3) ? other.scene : own.scene;
  const sample: Sample | undefined = chance.maybe(0.3) ? samples[route.name](scene) : undefined;
  const part = (name: "params" | "query" | "body", rate: number): unknown => {
    const schema = route[name];
    if (schema === undefined) return undefined;
    const drawing = new Draw({ chance, own: own.pool, other: crossing ? other.pool : undefined });
    const value = sample === undefined ? drawing.of(schema) : sample[name];
    if (!chance.maybe(rate)) return value;
    const result = broken(value, sample === undefined ? drawing.spots : spotsOf(value), chance);
    how.push(`${name} ${result.how}`);
    return result.value;
  };
  const path = pathOf(route, part("params", breakBody && route.body === undefined ? 1 : valid ? 0.02 : 0.08), chance);
  const query = queryOf(part("query", valid ? 0.05 : 0.25));
  const headers = credentialOf(chance, sender);
  let shot: Shot = { sender, route: route.name, method: route.method, target: `${path}${query}`, headers };
  if (route.body !== undefined) {
    const text = jsonText(part("body", breakBody ? 1 : valid ? 0.1 : 0.45));
    shot = { ...shot, headers: { ...headers, "content-type": jsonType }, body: { text } };
  }
  if (route.repeat === "key" && chance.maybe(0.3)) {
    const key = chance.maybe(0.8)
      ? `key-${chance.int(40)}`
      : chance.oneOf(["", " ", "é", "k".repeat(255), "k".repeat(256)]);
    shot = withHeader(shot, "idempotency-key", key);
  }
  const waits = route.query !== undefined && "waitMs" in route.query.shape;
  if (route.stream === true || (waits && chance.maybe(0.9))) shot = { ...shot, cutMs: chance.between(2, 60) };
  for (const [rate, name, apply] of requestBreakers) {
    if (valid || !chance.maybe(rate)) continue;
    shot = apply(shot, chance);
    how.push(name);
  }
  if (!valid && chance.maybe(0.03)) return rawShot(shot, chance);
  return how.length === 0 ? shot : { ...shot, broken: how.join("; ") };
}

function senderOf(chance: Chance, tenant: string, route: Route, mode: Mode): Sender {
  // The server's own tenant may change settings of all tenants, and some lists are for it alone.
  const home = route.repeat === "read" ? 4 : mode !== "mixed" ? 0 : route.role === "admin" ? 8 : 1;
  const sufficient = roles.filter((role) => route.role === "open" || role === route.role || role === "admin");
  return chance.weighted<Sender>([
    [70, { tenant, role: chance.oneOf(sufficient) }],
    [20, { tenant, role: chance.oneOf(roles) }],
    [4, { tenant: undefined, role: "none" }],
    [4, { tenant: undefined, role: "forged" }],
    [home, { tenant: "home", role: "admin" }],
  ]);
}

/** Invalid credentials: some similar to valid ones, some entirely different. */
const forgeries: readonly ((chance: Chance) => string)[] = [
  () => "Bearer",
  () => "Bearer ",
  () => "Basic cm9vdDpyb290",
  () => `Bearer ${"z".repeat(4_000)}`,
  () => "Bearer root.",
  () => `Bearer root.${"q".repeat(43)}`,
  () => `bearer ${"q".repeat(20)}.${"q".repeat(43)}`,
  () => "Bearer __proto__.constructor",
  () => "Bearer a.b.c",
  () => "Bearer ' or 1=1 --.x",
  (chance) => `Bearer ${chance.digits(20)}.${chance.digits(43)}`,
];

function credentialOf(chance: Chance, { tenant, role }: Sender): Record<string, string> {
  if (role === "none") return {};
  if (role === "forged") return { authorization: chance.oneOf(forgeries)(chance) };
  return { authorization: `Bearer ${tenant === "home" ? bootstrap : tokenOf(tenant!, role as Role)}` };
}

function pathOf(route: NamedRoute, params: unknown, chance: Chance): string {
  const values = new Map(pairsOf(params) ?? []);
  return route.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    const value = values.get(name);
    return chance.maybe(0.01) ? chance.oneOf(oddSegments) : percent(textOf(value));
  });
}

const oddSegments: readonly string[] = [
  "",
  ".",
  "..",
  "%2e%2e",
  "%zz",
  "%",
  "%00",
  "%ff%fe",
  "a%2Fb",
  ";a=b",
  "a".repeat(9_000),
];

function queryOf(query: unknown): string {
  const fields = (pairsOf(query) ?? []).map(([name, value]) => `${percent(name)}=${percent(textOf(value))}`);
  return fields.length === 0 ? "" : `?${fields.join("&")}`;
}

const textOf = (value: unknown): string =>
  typeof value === "string"
    ? value
    : value instanceof RawJson
      ? value.text.slice(0, 8_000)
      : jsonText(value).slice(0, 8_000);

const percent = (text: string): string => encodeURIComponent(text.slice(0, 12_000).toWellFormed());

function withHeader(shot: Shot, name: string, value: string): Shot {
  return { ...shot, headers: { ...shot.headers, [name]: value } };
}

const withoutHeader = (shot: Shot, name: string): Shot => {
  const { [name]: _dropped, ...headers } = shot.headers;
  return { ...shot, headers };
};

function compressed(shot: Shot, compress: (bytes: Buffer, chance: Chance) => Uint8Array, chance: Chance): Shot {
  const text = shot.body !== undefined && "text" in shot.body ? shot.body.text : "{}";
  const base64 = Buffer.from(compress(Buffer.from(text), chance)).toString("base64");
  return { ...withHeader(shot, "content-encoding", "gzip"), body: { base64 } };
}

/** More than the largest allowed body, compressed to a thousandth; `lying` writes a small size into the trailer. */
let bomb: Buffer | undefined;
function gzipBomb(lying: boolean): Buffer {
  bomb ??= gzipSync(Buffer.alloc(24 * 2 ** 20, 0x20), { level: 1 });
  const copy = Buffer.from(bomb);
  if (lying) copy.writeUInt32LE(64, copy.length - 4);
  return copy;
}

const compressions: readonly ((bytes: Buffer, chance: Chance) => Uint8Array)[] = [
  (bytes) => gzipSync(bytes),
  (bytes) => gzipSync(bytes),
  (bytes) => gzipSync(bytes),
  () => gzipBomb(false),
  () => gzipBomb(true),
  (bytes) => bytes, // claims to be compressed, and is not
  (bytes) => gzipSync(bytes).subarray(0, -9),
  (bytes) => Buffer.concat([gzipSync(bytes), gzipSync(bytes)]),
  (bytes, chance) => Buffer.concat([gzipSync(bytes), chance.bytes(40)]),
  (_bytes, chance) => Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0]), chance.bytes(60)]),
];

const oddHeaders: readonly (readonly [name: string, values: readonly string[]])[] = [
  [
    "content-type",
    [
      "text/plain",
      "application/json; charset=utf-16",
      "application/x-www-form-urlencoded",
      "",
      "application/json;".repeat(500),
    ],
  ],
  ["content-encoding", ["br", "deflate", "gzip, gzip", "identity", "x".repeat(3_000)]],
  ["accept-encoding", ["gzip", "gzip;q=0", "*", "gzip;q=nan", `${"gzip;q=0,".repeat(900)}`, " ".repeat(6_000)]],
  ["accept", ["text/html", "*/*;q=9", "application/xml"]],
  ["if-none-match", ["*", '"a"', `W/"${"a".repeat(2_000)}"`]],
  ["origin", ["https://evil.example", "null", "http://127.0.0.1"]],
  ["sec-fetch-site", ["cross-site", "none", "same-origin"]],
  ["host", ["evil.example", "127.0.0.1:1", "", "a".repeat(3_000)]],
  ["x-forwarded-for", ["1.2.3.4", "::1, 1.2.3.4", "x".repeat(3_000), ",".repeat(3_000)]],
  ["forwarded", ["for=1.2.3.4", 'for="[::1]";by=x', ";".repeat(3_000)]],
  ["x-request-id", ["r-1", "\u00ff", "r".repeat(2_000)]],
  ["x-http-method-override", ["DELETE"]],
  ["cookie", ["token=a.b", "a=".repeat(3_000)]],
  ["range", ["bytes=0-1", "bytes=-1,-1,-1"]],
  ["expect", ["100-continue", "nothing"]],
  ["transfer-encoding", ["chunked"]],
  ["content-length", ["0", "1", "99999999999"]],
];

type RequestBreaker = readonly [rate: number, name: string, apply: (shot: Shot, chance: Chance) => Shot];

/** Ways to break a request as a whole. */
const requestBreakers: readonly RequestBreaker[] = [
  [
    0.01,
    "another method",
    (shot, chance) => ({
      ...shot,
      method: chance.oneOf(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND"]),
    }),
  ],
  [0.01, "another path", (shot, chance) => ({ ...shot, target: chance.oneOf(oddTargets)(shot.target) })],
  [
    0.02,
    "a repeated query field",
    (shot) => ({ ...shot, target: `${shot.target}${shot.target.includes("?") ? "&" : "?"}limit=1&limit=2` }),
  ],
  [
    0.01,
    "an unknown query field",
    (shot, chance) => ({
      ...shot,
      target: `${shot.target}${shot.target.includes("?") ? "&" : "?"}${chance.oneOf(oddQueries)}`,
    }),
  ],
  [
    0.03,
    "an odd header",
    (shot, chance) => {
      const [name, values] = chance.oneOf(oddHeaders);
      return withHeader(shot, name, chance.oneOf(values));
    },
  ],
  [0.03, "compressed", (shot, chance) => compressed(shot, chance.oneOf(compressions), chance)],
  [0.01, "no content-type", (shot) => withoutHeader(shot, "content-type")],
  [0.01, "no body", ({ body: _body, ...shot }) => shot],
  [
    0.02,
    "another body",
    (shot, chance) => ({ ...withHeader(shot, "content-type", jsonType), body: strangeBody(chance) }),
  ],
  [0.02, "cut off", (shot, chance) => ({ ...shot, cutMs: chance.int(15) })],
];

const oddTargets: readonly ((target: string) => string)[] = [
  (target) => `/${target}`,
  (target) => target.replace("/v1/", "/V1/"),
  (target) => target.replace("/v1/", "/v1//"),
  (target) => target.replace("/v1/", "/v1/../v1/"),
  (target) => `${target}/`,
  (target) => `http://evil.example${target}`,
  () => "/",
  () => "*",
  () => "/index.html",
  () => "/assets/..%2f..%2fpackage.json",
  () => "/../../../../etc/passwd",
  () => `/${"a/".repeat(4_000)}`,
  (target) => `${target}#fragment`,
  (target) => `${target}?`.repeat(3),
];

const oddQueries: readonly string[] = [
  "a=1",
  "__proto__=1",
  "=",
  "&&&&",
  "%zz=%zz",
  "limit",
  "limit[]=1",
  "a=1&".repeat(200),
  `x=${"y".repeat(9_000)}`,
];

function strangeBody(chance: Chance): NonNullable<Shot["body"]> {
  return chance.oneOf([
    { text: jsonText(strangeValue(chance)) },
    { text: chance.oneOf(oddTexts) },
    { base64: Buffer.from([0x22, 0xff, 0xfe, 0x22]).toString("base64") },
    { base64: Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]).toString("base64") },
    { base64: Buffer.from(chance.bytes(chance.between(1, 3_000))).toString("base64") },
  ]);
}
