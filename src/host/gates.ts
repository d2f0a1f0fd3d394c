import { decode } from "../base/codec.ts";
import type { Approvers } from "../model/approvers.ts";
import type { Store } from "../store/contract.ts";
import { runIds } from "./run-ids.ts";

/** A gate that waits for its signal. */
export interface OpenGate {
  /** The run's id: with the name it is where the signal goes. */
  readonly run: string;
  readonly pos: number;
  readonly name: string;
  /** What is shown to whoever decides. */
  readonly payload: unknown;
  /** Hand it back with the signal: the approval then holds for this very act, and for nothing else. */
  readonly binds: string | undefined;
  /** Who may answer it; undefined: whoever may send signals. */
  readonly approvers: Approvers | undefined;
  readonly openedAt: number;
}

export async function openGates(store: Store, tenant: string, filter: { run?: string }): Promise<OpenGate[]> {
  const rows = await store.read.gates(tenant, { ...filter, open: true });
  const ids = await runIds(store, tenant, rows);
  return rows.map(({ run, pos, name, payload, binds, approvers, openedAt }) => ({
    run: ids.get(run)!,
    pos,
    name,
    payload: payload === null ? undefined : decode(payload),
    binds: binds ?? undefined,
    approvers: approvers === null ? undefined : (JSON.parse(approvers) as Approvers),
    openedAt,
  }));
}
