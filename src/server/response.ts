import { hash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { CodecError } from "../base/codec.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { problemOf, problemType, statusOf } from "../protocol/problem.ts";
import { jsonType, linesType, type WireRequest, type WireResponse } from "../protocol/transport.ts";

const pack = promisify(gzip);
/** Below it the packing costs more than the bytes. */
const packFromBytes = 1_024;

/** One that is no stream. */
export type WholeResponse = WireResponse & { readonly body: Uint8Array };

/** Nothing here is for a cache, nothing is what a browser guesses it to be, and nothing is for another's page. */
const always = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};

export function jsonResponse(json: unknown, status = 200): WholeResponse {
  return textResponse(JSON.stringify(json), jsonType, status);
}

export function textResponse(text: string, type: string, status = 200): WholeResponse {
  return { status, headers: { ...always, "content-type": type }, body: new TextEncoder().encode(text) };
}

export function linesResponse(body: AsyncIterable<Uint8Array>): WireResponse {
  return { status: 200, headers: { ...always, "content-type": linesType }, body };
}

export function problemResponse(error: TapeError): WireResponse {
  const status = statusOf(error.code);
  const answer = textResponse(JSON.stringify(problemOf(error)), problemType, status);
  const more: Record<string, string> = {};
  if (status === 401) more["www-authenticate"] = "Bearer";
  if (status === 429 || (status === 503 && error.retry === "later")) more["retry-after"] = String(retrySeconds(error));
  if (error.code === "TAPE_DRAINING" || error.code === "TAPE_TOO_LARGE") more.connection = "close";
  return { ...answer, headers: { ...answer.headers, ...more } };
}

function retrySeconds({ details }: TapeError): number {
  const ms = details.retryAfterMs;
  return typeof ms === "number" ? Math.max(1, Math.ceil(ms / 1_000)) : 1;
}

/** What went wrong, as a refusal from the table. A fault of our own says no more than that there was one. */
export function refusalOf(error: unknown): TapeError {
  if (isTapeError(error)) return error;
  if (error instanceof CodecError) return new TapeError("TAPE_BAD_INPUT", error.message, {}, error);
  return new TapeError("TAPE_INVARIANT", "the server failed; see its log", {}, error);
}

/** What many ask for and nobody changes: it is packed once, and whoever has it already is told so. */
export async function lasting(answer: WholeResponse): Promise<WireResponse> {
  const { body, headers } = answer;
  const etag = `"${hash("sha256", body, "base64url").slice(0, 22)}"`;
  return {
    ...answer,
    headers: { ...headers, etag },
    ...(body.length < packFromBytes ? {} : { packed: await pack(body) }),
  };
}

/** The answer as this caller takes it: packed, or only the word that it has not changed. */
export async function suited(answer: WireResponse, asked: WireRequest["headers"]): Promise<WireResponse> {
  const { body, headers, packed: ready, ...rest } = answer;
  if (headers.etag !== undefined && asked["if-none-match"] === headers.etag) {
    return { ...rest, status: 304, headers, body: new Uint8Array() };
  }
  if (!(body instanceof Uint8Array) || body.length < packFromBytes || !acceptsGzip(asked["accept-encoding"])) {
    return { ...rest, headers, body };
  }
  const more = { "content-encoding": "gzip", vary: "accept-encoding" };
  return { ...rest, headers: { ...headers, ...more }, body: ready ?? (await pack(body)) };
}

/** Headers come from anybody: what is longer than any that a client sends is read up to here. */
const acceptsLetters = 256;

/** By splitting alone: an expression over a stranger's text can take time that grows with its square. */
function acceptsGzip(accepts: string | undefined): boolean {
  return (accepts ?? "")
    .slice(0, acceptsLetters)
    .split(",")
    .some((one) => {
      const [coding = "", ...params] = one.split(";").map((part) => part.trim().toLowerCase());
      const weight = params.find((param) => param.startsWith("q="));
      return (coding === "gzip" || coding === "*") && (weight === undefined || Number(weight.slice(2)) > 0);
    });
}
