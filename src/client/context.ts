import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";
import type { Role } from "../protocol/route.ts";
import { maxItems } from "../protocol/shapes.ts";
import type { RpcCaller } from "./rpc-caller.ts";

/** What the groups of the remote store share. */
export interface RemoteContext {
  readonly caller: RpcCaller;
  readonly clock: Clock;
  readonly limits: Limits;
  /** The credential's tenant; no call names another. */
  readonly tenant: string;
  readonly role: Role;
  /** Batched requests under way at once, for each kind of write. */
  readonly maxRequests: number;
}

/** Whether a call is about the credential's own tenant. Another tenant's data is reported as absent, without a request. */
export const isOwn = ({ tenant }: RemoteContext, named: string | undefined): boolean =>
  named === undefined || named === tenant;

/** Refuses writes for any tenant but the credential's. */
export function assertOwn(deps: RemoteContext, named: string): void {
  if (isOwn(deps, named)) return;
  const message = `this credential belongs to tenant ${deps.tenant} and cannot write for another`;
  throw new TapeError("TAPE_FORBIDDEN", message, { tenant: named });
}

/** Splits a list that is longer than a call may be; the parts are sent together, and their results keep the order. */
export function inParts<I, A>(items: readonly I[], send: (part: I[]) => Promise<A>): Promise<A[]> {
  const parts: Promise<A>[] = [];
  for (let from = 0; from < items.length; from += maxItems) parts.push(send(items.slice(from, from + maxItems)));
  return Promise.all(parts);
}
