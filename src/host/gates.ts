import { decode } from "../base/codec.ts";
import type { Approvers } from "../model/approvers.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import type { Store } from "../store/contract/store.ts";
import { gateCursor } from "../store/list-cursors.ts";
import { runIds } from "./run-ids.ts";

/** A gate that waits for its signal. */
export interface OpenGate {
  /** The run's id. With the gate's name it addresses the signal. */
  readonly run: string;
  readonly pos: number;
  readonly name: string;
  /** What the approver is shown. */
  readonly payload: unknown;
  /** Send it with the signal: the approval then holds for this effect call only. */
  readonly binds: string | undefined;
  /** Who may answer the gate; undefined: every caller that may send signals. */
  readonly approvers: Approvers | undefined;
  readonly openedAt: number;
  /** Pass it as `after` to continue the list behind this gate. */
  readonly cursor: string;
}

export interface GateListFilter {
  readonly run?: string;
  /** Continues behind the gate with this cursor. */
  readonly after?: string;
  /** Maximum number of rows. A page is also bounded in bytes and may be shorter; the list ends with an empty page. */
  readonly limit?: number;
}

export async function openGates(store: Store, tenant: string, filter: GateListFilter): Promise<OpenGate[]> {
  assertKnownKeys("gates.list", filter, ["run", "after", "limit"]);
  const rows = await store.read.gates(tenant, { ...filter, open: true });
  const ids = await runIds(store, tenant, rows);
  return rows.map(({ run, pos, name, payload, binds, approvers, openedAt }) => ({
    cursor: gateCursor({ openedAt, run, pos }),
    run: ids.get(run)!,
    pos,
    name,
    payload: payload === null ? undefined : decode(payload),
    binds: binds ?? undefined,
    approvers: approvers === null ? undefined : (JSON.parse(approvers) as Approvers),
    openedAt,
  }));
}
