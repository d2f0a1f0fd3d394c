import { z } from "zod";
import { errorTable } from "../../src/model/errors.ts";
import { mayDo } from "../../src/protocol/route.ts";
import { matchRoute, type RouteMatch } from "../../src/server/router.ts";
import type { Reply } from "./send.ts";
import { sentText } from "./sent-text.ts";
import { bodyBytes, type Shot } from "./shot.ts";

/** A broken rule. */
export interface Finding {
  readonly rule: string;
  readonly message: string;
  /** The requests that reproduce it, in this order. */
  readonly shots: readonly Shot[];
}

/** A text that no response may contain unless the request did. */
export interface Hidden {
  readonly text: string;
  readonly what: string;
  /** The tenant that may see it. */
  readonly of?: string;
}

/** Outcome of a call, which decides whether its tenant's rows may have changed. */
export type Outcome = "rejected" | "read" | "accepted" | "unknown";

export interface JudgedReply {
  readonly outcome: Outcome;
  readonly findings: readonly Finding[];
  /** The response, if it is JSON. */
  readonly json: unknown;
  readonly code: string | undefined;
}

/** The documented error codes of an overloaded server. */
const overload: ReadonlySet<string> = new Set(["TAPE_OVERLOADED", "TAPE_STORE_BUSY"]);

/** Internal texts: files, stack traces, the database and its URL. */
const internals: readonly RegExp[] = [
  /\bat (async )?[\w.<>[\] ]+ \((file|node):/,
  /file:\/\/\//,
  /node:internal/,
  /node_modules/,
  /\/src\/[\w/-]+\.ts/,
  /postgres(ql)?:\/\//,
  /SQLITE_[A-Z]+/,
  /\b(relation|column|constraint) "\w+"/,
  /syntax error at or near/,
  /violates \w+[- ]\w+ constraint/,
  /\b[A-Z]\w*Error: /,
];

/** Judges the response to one request by the contract. */
export function judge(shot: Shot, replies: readonly Reply[], hidden: readonly Hidden[]): JudgedReply {
  const findings: Finding[] = [];
  const find = (rule: string, message: string): void => void findings.push({ rule, message, shots: [shot] });
  let json: unknown;
  let code: string | undefined;
  const sent = sentText(shot);
  for (const reply of replies) {
    if (reply.timedOut) find("no response", "the server did not respond within 45 s");
    if (reply.status === 0) continue;
    json = jsonIn(reply);
    code = codeIn(json) as string | undefined;
    judgeStatus(reply, json, find, shot.method === "HEAD" || (shot.raw !== undefined && /^HEAD /.test(sent)));
    for (const { text, what, of } of hidden) {
      const isHidden = of === undefined || of !== shot.sender.tenant;
      if (isHidden && reply.text.includes(text) && !sent.includes(text)) find("leak", `the response contains ${what}`);
    }
    if (reply.status < 400) continue;
    const text = internals
      .map((pattern) => pattern.exec(reply.text)?.[0])
      .find((found) => found && !sent.includes(found));
    if (text !== undefined) find("internals", `an error response contains internal text: ${text}`);
  }
  // Decoding may open envelopes in place, and the pool must learn the response as it arrived.
  const copy = structuredClone(json);
  const outcome = shot.raw === undefined ? judgeCall(shot, replies[0], copy, find) : outcomeOfRaw(shot, replies);
  return { outcome, findings, json, code };
}

type Find = (rule: string, message: string) => void;

/** An error of JSON-RPC has the code in its data. */
function codeIn(json: unknown): unknown {
  const { code, error } = (json ?? {}) as { code?: unknown; error?: { data?: { code?: unknown } } };
  return code ?? error?.data?.code;
}

function judgeStatus({ status, headers, text, whole }: Reply, json: unknown, find: Find, bodiless: boolean): void {
  const code = codeIn(json);
  if (status >= 500 && !(typeof code === "string" && overload.has(code))) {
    find("server error", `${status} ${text.slice(0, 300)}`);
  }
  if (status < 400 || bodiless) return;
  const known = typeof code === "string" && Object.hasOwn(errorTable, code);
  if (!known && (whole || text !== "" || headers["content-length"] === "0" || headers.connection === "close")) {
    find("no code", `${status} without a documented code: ${text.slice(0, 300)}`);
  }
}

function jsonIn({ headers, text }: Reply): unknown {
  if (!/json/.test(headers["content-type"] ?? "")) return undefined;
  const lines = /ndjson/.test(headers["content-type"] ?? "");
  try {
    return lines
      ? text
          .split("\n")
          .slice(0, -1)
          .filter(Boolean)
          .map((line) => JSON.parse(line))
      : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function outcomeOfRaw({ sender }: Shot, replies: readonly Reply[]): Outcome {
  if (sender.role === "none" || sender.role === "forged") return "rejected";
  return replies.length > 0 && replies.every(({ status }) => status >= 400) ? "rejected" : "unknown";
}

function judgeCall(shot: Shot, reply: Reply | undefined, json: unknown, find: Find): Outcome {
  const matched = safely(() => matchRoute(shot.method, shot.target));
  const read = matched === undefined || matched.route.repeat === "read";
  if (reply === undefined || reply.status === 0) return read ? "read" : "unknown";
  if (reply.status >= 400 || matched === undefined) return "rejected";
  const { route } = matched;
  const { role } = shot.sender;
  if (route.role !== "open" && (role === "none" || role === "forged" || !mayDo(role, route.role))) {
    find("role", `${route.name} needs ${route.role}, and was carried out for ${role}`);
  }
  if (shot.method !== "HEAD") judgeBody(matched, reply, json, find);
  const fault = faultOf(shot, matched);
  // Another system may send any body.
  if (fault !== undefined && reply.whole && route.foreign !== true)
    find("accepted", `${route.name} accepted what the contract rejects: ${fault}`);
  if (read) return "read";
  const verdicts = verdictsIn(json);
  return verdicts.length > 0 && !verdicts.includes(true) ? "rejected" : "accepted";
}

/** Checks the response body against the contract. */
function judgeBody({ route }: RouteMatch, reply: Reply, json: unknown, find: Find): void {
  if (route.type !== undefined || reply.status !== 200) return;
  if (!reply.whole && route.stream !== true) return;
  const items = route.stream === true ? ((json ?? []) as unknown[]) : [json];
  for (const item of items) {
    const decoded = safely(() => z.safeDecode(route.answer, item as never));
    if (decoded?.success === true) continue;
    const why = decoded === undefined ? "it cannot be decoded" : z.prettifyError(decoded.error!);
    find("contract", `the response of ${route.name} violates the contract: ${why.slice(0, 300)}`);
    return;
  }
}

/** Whether the contract or the role requires a rejection of this call. */
export function mustBeRejected(shot: Shot): boolean {
  const matched = safely(() => matchRoute(shot.method, shot.target));
  if (matched === undefined) return true;
  const { role } = shot.sender;
  if (role === "none" || role === "forged") return matched.route.role !== "open";
  if (matched.route.role !== "open" && !mayDo(role, matched.route.role)) return true;
  return faultOf(shot, matched) !== undefined;
}

/** Why the contract rejects this request; undefined: it does not. */
function faultOf(shot: Shot, { route, params, query }: RouteMatch): string | undefined {
  const fault = (part: string, schema: z.ZodType | undefined, value: unknown): string | undefined => {
    if (schema === undefined) return undefined;
    const decoded = safely(() => z.safeDecode(schema, value as never));
    return decoded?.success === true ? undefined : `${part} ${decoded?.error?.issues[0]?.path.join(".") ?? ""}`;
  };
  const bodyFault = (): string | undefined => {
    const { "content-encoding": encoding = "identity" } = shot.headers;
    if (route.body === undefined || encoding !== "identity") return undefined;
    const text = (bodyBytes(shot)?.toString("utf8") ?? "").replace(/^\uFEFF/, "");
    return fault(
      "body",
      route.body,
      safely(() => JSON.parse(text)),
    );
  };
  const fields = Object.fromEntries(new URLSearchParams(query));
  return fault("path", route.params, params) ?? fault("query", route.query, fields) ?? bodyFault();
}

function safely<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** Every verdict of a response. */
function verdictsIn(json: unknown): boolean[] {
  if (typeof json !== "object" || json === null) return [];
  const { ok, verdicts, calls } = json as { ok?: unknown; verdicts?: unknown; calls?: unknown };
  if (typeof ok === "boolean") return [ok];
  return [verdicts, calls].flatMap((list) => (Array.isArray(list) ? list.flatMap(verdictsIn) : []));
}
