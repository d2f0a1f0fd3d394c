import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { boundedBody } from "../base/request-body.ts";
import { TapeError } from "../model/errors.ts";
import type { Verify } from "./verify/verify.ts";

/** A handler of the fetch API, as Cloud Run, Vercel, Netlify and Hono take it. */
export type Handler = (request: Request) => Promise<Response>;

/** A request that may be worked on. */
export interface AdmittedRequest {
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
}

export interface Admission {
  /** For messages: the function that was called. */
  readonly subject: string;
  readonly verify: Verify;
  readonly log: Log;
  readonly maxBytes: number;
  /** Called for a request that is not worked on. */
  readonly onRefused?: (outcome: "refused" | "unavailable") => void;
}

/** Accepts a POST whose sender is verified and whose body is not too large, and hands it on. */
export function admitted(
  { subject, verify, log, maxBytes, onRefused = () => {} }: Admission,
  work: (request: AdmittedRequest) => Promise<Response>,
): Handler {
  if (typeof verify?.check !== "function") {
    throw new TapeError("TAPE_UNVERIFIED", `${subject}: verify is required`, { field: "verify" });
  }
  const refused = (status: number, title: string, headers: Readonly<Record<string, string>> = {}): Response => {
    onRefused("refused");
    return problem(status, title, headers);
  };
  return async (request) => {
    if (request.method !== "POST") return refused(405, "use POST", { allow: "POST" });
    const body = await boundedBody(request, maxBytes);
    if (body === undefined) return refused(413, `the body is larger than ${maxBytes} bytes`);
    let verdict: Awaited<ReturnType<Verify["check"]>>;
    try {
      verdict = await verify.check(request.headers, body);
    } catch (error) {
      log("error", "push.verify_failed", { verify: verify.label, ...errorFields(error) });
      onRefused("unavailable");
      return unavailable();
    }
    if (verdict.ok) return work({ headers: request.headers, body, signal: request.signal });
    log("warn", "push.refused", { verify: verify.label, status: verdict.status, reason: verdict.reason });
    const challenge = verdict.status === 401 ? { "www-authenticate": "Bearer" } : {};
    return refused(verdict.status, verdict.status === 401 ? "not authenticated" : "not permitted", challenge);
  };
}

export const noContent = (): Response => new Response(null, { status: 204 });

/** Senders repeat a request that got 503, not before this time. */
const retryAfterS = "5";

export const unavailable = (): Response =>
  problem(503, "not available now; repeat the request", { "retry-after": retryAfterS });

export function problem(status: number, title: string, headers: Readonly<Record<string, string>> = {}): Response {
  const body = JSON.stringify({ type: "about:blank", title, status });
  return new Response(body, { status, headers: { "content-type": "application/problem+json", ...headers } });
}
