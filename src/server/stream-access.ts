import { TapeError } from "../model/errors.ts";
import type { WireRequest } from "../protocol/transport.ts";
import type { Store, StreamAccess } from "../store/contract/store.ts";
import { limitKey } from "./address.ts";
import type { FailedSignIns } from "./failed-sign-ins.ts";
import type { Caller } from "./handler-types.ts";
import type { RouteMatch } from "./router.ts";

const bearer = /^Bearer +(stream\.\S+)$/i;

/** The token of a stream that the request brings: as its credential or, from a browser, in its address. */
export function tokenIn({ route, query }: RouteMatch, { headers }: Pick<WireRequest, "headers">): string | undefined {
  if (route.events !== true) return undefined;
  return new URLSearchParams(query).get("token") ?? bearer.exec(headers.authorization ?? "")?.[1];
}

/**
 * Callers with the token of one stream: readers of that stream, and of nothing else. For every other stream and route
 * the token does not exist.
 */
export class StreamTokens {
  readonly #read: Pick<Store["read"], "streamAccess">;
  readonly #failures: FailedSignIns;

  constructor(read: Pick<Store["read"], "streamAccess">, failures: FailedSignIns) {
    this.#read = read;
    this.#failures = failures;
  }

  /** undefined: the request brings no such token. TAPE_UNAUTHENTICATED: it is not valid for this stream. */
  async caller(match: RouteMatch, request: WireRequest): Promise<Caller | undefined> {
    const token = tokenIn(match, request);
    if (token === undefined) return undefined;
    const address = limitKey(request.from ?? "");
    this.#failures.assertMayRead(address);
    const access = await this.#access(match, token);
    if (access !== undefined) return { tenant: access.tenant, role: "reader", name: "stream token", token: "stream" };
    this.#failures.count(address);
    throw new TapeError("TAPE_UNAUTHENTICATED", "the token does not read this stream, or has expired");
  }

  /** Whether the token of an open stream has not expired; undefined: it was opened with another credential. */
  validity(match: RouteMatch, request: WireRequest): (() => Promise<boolean>) | undefined {
    const token = tokenIn(match, request);
    if (token === undefined) return undefined;
    // A store that does not answer does not invalidate a token.
    return () =>
      this.#access(match, token).then(
        (access) => access !== undefined,
        () => true,
      ); // prettier-ignore
  }

  async #access({ params }: RouteMatch, token: string): Promise<StreamAccess | undefined> {
    const access = await this.#read.streamAccess(token);
    return access?.run === params.id && access?.stream === params.name ? access : undefined;
  }
}
