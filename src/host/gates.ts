import { decode } from "../base/codec.ts";
import type { Store } from "../store/contract.ts";

/** A gate that waits for its signal. */
export interface OpenGate {
  readonly name: string;
  /** What is shown to whoever decides. */
  readonly payload: unknown;
  /** Hand it back with the signal: the approval then holds for this very act, and for nothing else. */
  readonly binds: string | undefined;
  readonly openedAt: number;
}

export async function openGates(store: Store, tenant: string, filter: { run?: string }): Promise<OpenGate[]> {
  const rows = await store.read.gates(tenant, { ...filter, open: true });
  return rows.map(({ name, payload, binds, openedAt }) => ({
    name,
    payload: payload === null ? undefined : decode(payload),
    binds: binds ?? undefined,
    openedAt,
  }));
}
