import { decode } from "../base/codec.ts";
import type { Approvers } from "../model/approvers.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import type { Store } from "../store/contract/store.ts";
import { gateCursor } from "../store/list-cursors.ts";
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
  /** `after` of the list that continues behind it. */
  readonly cursor: string;
}

export interface GateListFilter {
  readonly run?: string;
  /** Behind the gate with this cursor. */
  readonly after?: string;
  /** At most so many; a page may be shorter, because it has a bound in bytes: the list ends with an empty one. */
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
