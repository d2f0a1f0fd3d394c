import { defined } from "../base/defined.ts";
import { type ErrorCode, TapeError } from "../model/errors.ts";
import type { StoreHealth } from "../store/contract/store.ts";
import type { RpcCaller } from "./rpc-caller.ts";

/** What `/healthz` reports to a caller with a credential. */
interface HealthReport {
  readonly store?: { readonly reachable?: boolean; readonly code?: ErrorCode };
  readonly feed?: { readonly blockedBy?: string | null };
}

/** The health of the store behind the server, as the server sees it. */
export async function remoteHealth(caller: RpcCaller): Promise<StoreHealth> {
  const { store, feed } = (await caller.call("healthz", {})) as HealthReport;
  if (store?.reachable === false) {
    const message = "the server does not reach its store";
    throw new TapeError(store.code ?? "TAPE_STORE_UNREACHABLE", message);
  }
  return defined({ feedBlockedBy: feed?.blockedBy ?? undefined });
}
