import { TapeError } from "../model/errors.ts";
import type { WireRequest, WireResponse } from "../protocol/transport.ts";
import type { RouteMatch } from "./router.ts";
import { tokenIn } from "./stream-access.ts";

/** Maximum number of origins. */
const maxOrigins = 100;

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text;

/** `"https://app.example, http://localhost:3000"`: origins of pages that may read streams with a token for them. */
export function pageOrigins(text: string): ReadonlySet<string> {
  const origins = text.split(",").flatMap((part) => (part.trim() === "" ? [] : [part.trim()]));
  const wrong = origins.find((origin) => !/^https?:/.test(origin) || origin.includes("*") || !isOrigin(origin));
  if (wrong !== undefined) {
    const message = `tape.server.stream_origins: ${JSON.stringify(wrong)} is no origin, such as https://app.example`;
    throw new TapeError("TAPE_BAD_CONFIG", message);
  }
  if (origins.length > maxOrigins) {
    throw new TapeError("TAPE_BAD_CONFIG", `tape.server.stream_origins: more than ${maxOrigins} origins`);
  }
  return new Set(origins);
}

/**
 * The origin of a page that may read this stream. It has to bring a token for the stream: with no other credential can a
 * page of another origin do anything.
 */
export function pageOf(
  origins: ReadonlySet<string>,
  matched: RouteMatch,
  request: Pick<WireRequest, "headers">,
): string | undefined {
  const { origin } = request.headers;
  if (origin === undefined || !origins.has(origin)) return undefined;
  return tokenIn(matched, request) === undefined ? undefined : origin;
}

/** Lets the page read the response, also where it is a refusal. No cookie or credential of the browser goes with it. */
export function readableBy(page: string, response: WireResponse): WireResponse {
  const cors = {
    "access-control-allow-origin": page,
    "cross-origin-resource-policy": "cross-origin",
    vary: "origin",
  };
  return { ...response, headers: { ...response.headers, ...cors } };
}
