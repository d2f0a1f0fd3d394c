import { type ErrorCode, isTapeError, type TapeError } from "../model/errors.ts";
import type { GuardTable } from "./guard-table.ts";
import { type FencedRequest, RequestFence, type RequestFenceOptions } from "./request-fence.ts";

/** 412: the request's token is stale. 428: it has no token. 401: its signature is missing or wrong. */
const statuses: Partial<Record<ErrorCode, number>> = { TAPE_FENCED: 412, TAPE_UNAUTHENTICATED: 401 };
const statusOf = (error: TapeError): number => statuses[error.code] ?? 428;

/**
 * Wraps a handler whose requests must carry a current token. Stale requests get 412, requests without a token 428, and
 * with a `secret`, unsigned requests 401, all before the handler is called. Takes the Fetch standard's `Request` and
 * returns its `Response`; with other frameworks use a {@link RequestFence}.
 *
 * @example
 * const handle = fencedHandler(async (request, fenced) => {
 *   await put(await request.json(), fenced.token);
 *   return new Response("stored");
 * });
 */
export function fencedHandler(
  handler: (request: Request, fenced: FencedRequest) => Response | Promise<Response>,
  options: RequestFenceOptions & { readonly guards?: GuardTable } = {},
): (request: Request) => Promise<Response> {
  const { guards, ...rules } = options;
  const fence = new RequestFence(guards, rules);
  return async (request) => {
    let entered = false;
    try {
      return await fence.run(
        (name) => request.headers.get(name),
        (fenced) => {
          entered = true;
          return handler(request, fenced);
        },
      );
    } catch (error) {
      // A guard inside the handler may still refuse a token that the fence accepted.
      const refusedEarly = isTapeError(error, "TAPE_BAD_INPUT") || isTapeError(error, "TAPE_UNAUTHENTICATED");
      const isRefusal = isTapeError(error, "TAPE_FENCED") || (!entered && refusedEarly);
      if (!isRefusal || !isTapeError(error)) throw error;
      const { code, message, details } = error;
      const problem = { type: "about:blank", status: statusOf(error), title: message, code, details };
      return new Response(JSON.stringify(problem), {
        status: problem.status,
        headers: { "content-type": "application/problem+json" },
      });
    }
  };
}
