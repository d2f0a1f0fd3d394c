import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { z } from "zod";
import type { Clock } from "../base/clock.ts";
import { CodecError } from "../base/codec.ts";
import { TapeError } from "../model/errors.ts";
import { jsonType, type WireRequest } from "../protocol/transport.ts";
import type { BodyRoom } from "./bodies.ts";
import type { ServerLimits } from "./limits.ts";
import type { ParseTurns } from "./parse-turns.ts";
import { weigh } from "./weigh.ts";

const unpack = promisify(gunzip);
const utf8 = new TextDecoder("utf-8", { fatal: true });

export function tooLarge(max: number): TapeError {
  const message = `the body of this call may have at most ${max} bytes`;
  return new TapeError("TAPE_TOO_LARGE", message, { limit: "bodyBytes", max });
}

export interface BodyDeps {
  readonly limits: ServerLimits;
  readonly room: BodyRoom;
  readonly clock: Clock;
  readonly turns: ParseTurns;
}

/** The JSON of a body. Its size is checked before it is unpacked, its number of values before it is parsed. */
export async function jsonOf(
  headers: WireRequest["headers"],
  sent: Uint8Array | undefined,
  deps: BodyDeps,
): Promise<unknown> {
  const type = (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (type !== jsonType) throw badInput("content-type", `must be ${jsonType}`);
  if (sent === undefined || sent.length === 0) throw badInput("body", "is missing");
  return parsed(await textOf(headers, sent, deps), deps);
}

/** The text of a body, after its number of values has been checked as if it were JSON. */
export async function textOf(
  headers: WireRequest["headers"],
  sent: Uint8Array,
  { limits, room, clock, turns }: BodyDeps,
): Promise<string> {
  const bytes = await unpacked(headers["content-encoding"], sent, room);
  await turns.next(bytes.length);
  await weigh(bytes, limits.values, clock);
  try {
    return utf8.decode(bytes);
  } catch {
    throw badInput("body", "is not valid UTF-8");
  }
}

export function parsed(text: string, { limits }: Pick<BodyDeps, "limits">): unknown {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw badInput("body", "is not valid JSON"); // the parser's message quotes the text, which may contain a secret
  }
  inspect(json, limits.depth);
  return json;
}

async function unpacked(encoding: string | undefined, sent: Uint8Array, room: BodyRoom): Promise<Uint8Array> {
  if (encoding === undefined || encoding === "identity") return sent;
  if (encoding.toLowerCase() !== "gzip") throw badInput("content-encoding", "must be gzip or identity");
  const claimed = claimedBytes(sent);
  if (claimed > room.maxBytes) throw tooLarge(room.maxBytes);
  room.take(claimed);
  try {
    return await unpack(sent, { maxOutputLength: Math.max(1, claimed) });
  } catch {
    throw badInput("body", "is not valid gzip, or has several members");
  }
}

/** Gzip states the unpacked size at its end. A body with a wrong size is unpacked no further than that size. */
function claimedBytes(sent: Uint8Array): number {
  if (sent.length < 18) throw badInput("body", "is not valid gzip");
  return new DataView(sent.buffer, sent.byteOffset + sent.length - 4, 4).getUint32(0, true);
}

/** Keys that address a prototype are never data. A caller that sends one is probing for a careless copy. */
const forbiddenKeys: ReadonlySet<string> = new Set(["__proto__", "constructor"]);

function inspect(json: unknown, levels: number): void {
  if (typeof json !== "object" || json === null) return;
  if (levels === 0) throw badInput("body", "is nested too deep");
  if (Array.isArray(json)) {
    for (const item of json) inspect(item, levels - 1);
    return;
  }
  for (const key in json) {
    if (forbiddenKeys.has(key)) throw badInput("body", `may not have a key ${key}`);
    inspect((json as Record<string, unknown>)[key], levels - 1);
  }
}

/** Three times the number of fields of any call. */
const maxFields = 32;

/** The query as an object of strings. The number of fields is checked before any of them is read. */
export function queryOf(query: string): Record<string, string> {
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  if (query === "") return fields;
  if (query.split("&", maxFields + 1).length > maxFields) throw badInput("query", `has at most ${maxFields} fields`);
  for (const [name, value] of new URLSearchParams(query)) {
    if (Object.hasOwn(fields, name)) throw badInput(`query.${excerpt(name)}`, "is given twice");
    fields[name] = value;
  }
  return fields;
}

/** Decodes JSON by its schema. The error names the first wrong field and does not repeat its value. */
export function decodePart<S extends z.ZodType>(part: string, schema: S, json: unknown): z.output<S> {
  let decoded: ReturnType<typeof z.safeDecode<S>>;
  try {
    decoded = z.safeDecode(schema, json as z.input<S>, firstErrorOnly);
  } catch (error) {
    if (error instanceof CodecError) throw badInput(part, excerpt(error.message));
    throw error;
  }
  if (decoded.success) return decoded.data;
  const issue = deepest(decoded.error.issues[0]!);
  const field = [part, ...issue.path.map(String)].join(".");
  throw badInput(excerpt(field), excerpt(issue.message));
}

/** An error repeats no more of the request than its author needs to find the place. */
const maxExcerptChars = 200;

const excerpt = (text: string): string =>
  text.length <= maxExcerptChars ? text : `${text.slice(0, maxExcerptChars)}…`;

/** Only the first error is reported: collecting one for each of a million items would cost more than the body. */
const firstErrorOnly: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };

/** The error of the union branch that matched furthest, which is most likely the intended one. */
function deepest(issue: z.core.$ZodIssue): { path: readonly PropertyKey[]; message: string } {
  if (issue.code !== "invalid_union") return issue;
  const inner = issue.errors.flatMap((issues) => issues.slice(0, 1).map(deepest));
  const best = inner.toSorted((a, b) => b.path.length - a.path.length)[0];
  return best === undefined ? issue : { path: [...issue.path, ...best.path], message: best.message };
}

function badInput(field: string, message: string): TapeError {
  return new TapeError("TAPE_BAD_INPUT", `${field}: ${message}`, { field });
}
