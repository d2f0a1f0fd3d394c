import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { CodecError } from "../base/codec.ts";
import { hash } from "../base/late-builtins.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { problemOf, problemType, statusOf } from "../protocol/problem.ts";
import { eventsType, jsonType, linesType, type WireRequest, type WireResponse } from "../protocol/transport.ts";

const pack = promisify(gzip);
const utf8 = new TextEncoder();
/** Compressing a smaller body costs more than its bytes. */
const packFromBytes = 1_024;

/** A response that is no stream. */
export type WholeResponse = WireResponse & { readonly body: Uint8Array };

/** No caching, no content sniffing, no use by pages of other origins. */
export const always = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};

export function jsonResponse(json: unknown, status = 200): WholeResponse {
  return textResponse(JSON.stringify(json), jsonType, status);
}

export function textResponse(text: string, type: string, status = 200): WholeResponse {
  return { status, headers: { ...always, "content-type": type }, body: utf8.encode(text) };
}

export function linesResponse(body: AsyncIterable<Uint8Array>): WireResponse {
  return { status: 200, headers: { ...always, "content-type": linesType }, body };
}

/** Events for browsers. A proxy that collects them would delay each one. */
export function eventsResponse(body: AsyncIterable<Uint8Array>): WireResponse {
  return { status: 200, headers: { ...always, "content-type": eventsType, "x-accel-buffering": "no" }, body };
}

export function problemResponse(error: TapeError): WireResponse {
  const status = statusOf(error.code);
  const response = textResponse(JSON.stringify(problemOf(error)), problemType, status);
  const extra: Record<string, string> = {};
  if (status === 401) extra["www-authenticate"] = "Bearer";
  if (status === 429 || (status === 503 && error.retry === "later")) extra["retry-after"] = String(retrySeconds(error));
  if (error.code === "TAPE_DRAINING" || error.code === "TAPE_TOO_LARGE") extra.connection = "close";
  return { ...response, headers: { ...response.headers, ...extra } };
}

function retrySeconds({ details }: TapeError): number {
  const ms = details.retryAfterMs;
  return typeof ms === "number" ? Math.max(1, Math.ceil(ms / 1_000)) : 1;
}

/** Any error as one from the error table. An internal error reveals nothing but that it happened. */
export function refusalOf(error: unknown): TapeError {
  if (isTapeError(error)) return error;
  if (error instanceof CodecError) return new TapeError("TAPE_BAD_INPUT", error.message, {}, error);
  return new TapeError("TAPE_INVARIANT", "the server failed; see its log", {}, error);
}

/** A response that never changes: compressed once, with an ETag for callers that have it already. */
export async function lasting(response: WholeResponse): Promise<WireResponse> {
  const { body, headers } = response;
  const etag = `"${hash("sha256", body, "base64url").slice(0, 22)}"`;
  return {
    ...response,
    headers: { ...headers, etag },
    ...(body.length < packFromBytes ? {} : { packed: await pack(body) }),
  };
}

/** The response as this caller accepts it: compressed, or 304 if unchanged. */
export async function suited(response: WireResponse, accepted: WireRequest["headers"]): Promise<WireResponse> {
  const { body, headers, packed: ready, ...rest } = response;
  if (headers.etag !== undefined && accepted["if-none-match"] === headers.etag) {
    return { ...rest, status: 304, headers, body: new Uint8Array() };
  }
  if (!(body instanceof Uint8Array) || body.length < packFromBytes || !acceptsGzip(accepted["accept-encoding"])) {
    return { ...rest, headers, body };
  }
  const encoding = { "content-encoding": "gzip", vary: "accept-encoding" };
  return { ...rest, headers: { ...headers, ...encoding }, body: ready ?? (await pack(body)) };
}

/** Any caller sends headers: one that is longer than a real client's is read up to here. */
const maxAcceptChars = 256;

/** Splits instead of matching: a regular expression over untrusted text can take quadratic time. */
function acceptsGzip(accepts: string | undefined): boolean {
  return (accepts ?? "")
    .slice(0, maxAcceptChars)
    .split(",")
    .some((entry) => {
      const [coding = "", ...params] = entry.split(";").map((part) => part.trim().toLowerCase());
      const weight = params.find((param) => param.startsWith("q="));
      return (coding === "gzip" || coding === "*") && (weight === undefined || Number(weight.slice(2)) > 0);
    });
}

/** A stream of another protocol keeps its place until it ends. */
export function untilRead(response: WireResponse, leave: () => void): WireResponse {
  const { body } = response;
  if (body instanceof Uint8Array) return response;
  const read = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } finally {
      leave();
    }
  };
  return { ...response, body: read() };
}
