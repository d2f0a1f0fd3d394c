import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { CodecError } from "../base/codec.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { problemOf, problemType, statusOf } from "../protocol/problem.ts";
import { jsonType, linesType, type WireAnswer } from "../protocol/wire.ts";

const pack = promisify(gzip);
/** Below it the packing costs more than the bytes. */
const packFromBytes = 1_024;

/** Nothing here is for a cache, and nothing is what a browser guesses it to be. */
const always = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

export function jsonAnswer(json: unknown, status = 200): WireAnswer {
  return textAnswer(JSON.stringify(json), jsonType, status);
}

export function textAnswer(text: string, type: string, status = 200): WireAnswer {
  return { status, headers: { ...always, "content-type": type }, body: new TextEncoder().encode(text) };
}

export function linesAnswer(body: AsyncIterable<Uint8Array>): WireAnswer {
  return { status: 200, headers: { ...always, "content-type": linesType }, body };
}

export function problemAnswer(error: TapeError): WireAnswer {
  const status = statusOf(error.code);
  const answer = textAnswer(JSON.stringify(problemOf(error)), problemType, status);
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
  return new TapeError("TAPE_INVARIANT", "the server failed; its log says why", {}, error);
}

export async function packed(answer: WireAnswer, accepts: string | undefined): Promise<WireAnswer> {
  const { body, headers } = answer;
  if (!(body instanceof Uint8Array) || body.length < packFromBytes || !acceptsGzip(accepts)) return answer;
  const more = { "content-encoding": "gzip", vary: "accept-encoding" };
  return { ...answer, headers: { ...headers, ...more }, body: await pack(body) };
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
