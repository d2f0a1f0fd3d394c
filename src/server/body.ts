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

export function tooLarge(most: number): TapeError {
  const message = `the body of this call holds at most ${most} bytes`;
  return new TapeError("TAPE_TOO_LARGE", message, { limit: "bodyBytes", most });
}

export interface Reading {
  readonly limits: ServerLimits;
  readonly room: BodyRoom;
  readonly clock: Clock;
  readonly turns: ParseTurns;
}

/** The JSON of a body. Its size is looked at before it is unpacked, and what it holds before it is parsed. */
export async function jsonOf(
  headers: WireRequest["headers"],
  sent: Uint8Array | undefined,
  { limits, room, clock, turns }: Reading,
): Promise<unknown> {
  const type = (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (type !== jsonType) throw badInput("content-type", `must be ${jsonType}`);
  if (sent === undefined || sent.length === 0) throw badInput("body", "is missing");
  const bytes = await unpacked(headers["content-encoding"], sent, room);
  await turns.next(bytes.length);
  await weigh(bytes, limits.values, clock);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badInput("body", "is not valid UTF-8");
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw badInput("body", "is not valid JSON"); // the parser's message quotes the text, which may hold a secret
  }
  inspect(json, limits.depth);
  return json;
}

async function unpacked(encoding: string | undefined, sent: Uint8Array, room: BodyRoom): Promise<Uint8Array> {
  if (encoding === undefined || encoding === "identity") return sent;
  if (encoding.toLowerCase() !== "gzip") throw badInput("content-encoding", "must be gzip or identity");
  const claimed = claimedBytes(sent);
  if (claimed > room.most) throw tooLarge(room.most);
  room.take(claimed);
  try {
    return await unpack(sent, { maxOutputLength: Math.max(1, claimed) });
  } catch {
    throw badInput("body", "is not valid gzip, or has several members");
  }
}

/** Gzip says at its end how long it was. One that lies is unpacked no further than it said. */
function claimedBytes(sent: Uint8Array): number {
  if (sent.length < 18) throw badInput("body", "is not valid gzip");
  return new DataView(sent.buffer, sent.byteOffset + sent.length - 4, 4).getUint32(0, true);
}

/** Keys that reach for a prototype are nobody's data: whoever sends one looks for a careless copy somewhere behind. */
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

/** Three times as many fields as any call has. */
const maxFields = 32;

/** The query as an object of texts. How many fields it has is looked at before any of them is. */
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

/** JSON as what the program means; a refusal names the first field that is wrong, and does not repeat its value. */
export function decodePart<S extends z.ZodType>(part: string, schema: S, json: unknown): z.output<S> {
  let decoded: ReturnType<typeof z.safeDecode<S>>;
  try {
    decoded = z.safeDecode(schema, json as z.input<S>, firstFaultOnly);
  } catch (error) {
    if (error instanceof CodecError) throw badInput(part, excerpt(error.message));
    throw error;
  }
  if (decoded.success) return decoded.data;
  const issue = deepest(decoded.error.issues[0]!);
  const field = [part, ...issue.path.map(String)].join(".");
  throw badInput(excerpt(field), excerpt(issue.message));
}

/** What was sent is repeated in a refusal only as far as a person needs it to find the place. */
const excerptLetters = 200;

const excerpt = (text: string): string => (text.length <= excerptLetters ? text : `${text.slice(0, excerptLetters)}…`);

/** Only the first is told: to collect a fault for each of a million items would cost more than the body. */
const firstFaultOnly: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };

/** Of a union's branches the one that got furthest: its complaint is the one that was meant. */
function deepest(issue: z.core.$ZodIssue): { path: readonly PropertyKey[]; message: string } {
  if (issue.code !== "invalid_union") return issue;
  const inner = issue.errors.flatMap((issues) => issues.slice(0, 1).map(deepest));
  const best = inner.toSorted((a, b) => b.path.length - a.path.length)[0];
  return best === undefined ? issue : { path: [...issue.path, ...best.path], message: best.message };
}

function badInput(field: string, message: string): TapeError {
  return new TapeError("TAPE_BAD_INPUT", `${field}: ${message}`, { field });
}
