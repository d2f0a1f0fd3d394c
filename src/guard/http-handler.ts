import { type ErrorCode, isTapeError, type TapeError } from "../model/errors.ts";
import type { GuardTable } from "./guard-table.ts";
import { type FencedDoorOptions, type FencedRequest, RequestFence } from "./request-fence.ts";

/** 412: a precondition of the request, its token, does not hold. 428: it brought none. 401: nobody signed it. */
const statuses: Partial<Record<ErrorCode, number>> = { TAPE_FENCED: 412, TAPE_UNAUTHENTICATED: 401 };
const statusOf = (error: TapeError): number => statuses[error.code] ?? 428;

/**
 * A handler of requests that must be made under a current term: stale ones are answered 412, and ones without a token
 * 428, before the handler is called; with a secret, ones that were not signed with it 401. For `Request` and `Response` as the Fetch standard has them; with anything else use
 * a {@link RequestFence}.
 *
 * @example
 * const handle = fencedHandler(async (request, fenced) => {
 *   await put(await request.json(), fenced.token);
 *   return new Response("stored");
 * });
 */
export function fencedHandler(
  handler: (request: Request, fenced: FencedRequest) => Response | Promise<Response>,
  options: FencedDoorOptions & { readonly guards?: GuardTable } = {},
): (request: Request) => Promise<Response> {
  const { guards, ...rules } = options;
  const door = new RequestFence(guards, rules);
  return async (request) => {
    let entered = false;
    try {
      return await door.run(
        (name) => request.headers.get(name),
        (fenced) => {
          entered = true;
          return handler(request, fenced);
        },
      );
    } catch (error) {
      // A guard inside the handler may find out later what the door could not know.
      const atTheDoor = isTapeError(error, "TAPE_BAD_INPUT") || isTapeError(error, "TAPE_UNAUTHENTICATED");
      const ours = isTapeError(error, "TAPE_FENCED") || (!entered && atTheDoor);
      if (!ours || !isTapeError(error)) throw error;
      const { code, message, details } = error;
      const problem = { type: "about:blank", status: statusOf(error), title: message, code, details };
      return new Response(JSON.stringify(problem), {
        status: problem.status,
        headers: { "content-type": "application/problem+json" },
      });
    }
  };
}
