import { runStatuses } from "../model/machines.ts";
import type { TimerRow } from "../model/rows.ts";
import { assertOneOf } from "../sdk/validate.ts";
import type { RunFilter, RunView, Store } from "../store/contract/store.ts";
import { type EffectListFilter, type EffectView, listEffects } from "./effects.ts";
import { type GateListFilter, type OpenGate, openGates } from "./gates.ts";

/** What an app lists: `app.runs`, `app.effects` and so on. */
export interface Lists {
  /** Runs: one by its id, or a list by status, workflow, labels and times. */
  readonly runs: {
    get(id: string): Promise<RunView | undefined>;
    list(filter?: RunFilter): Promise<RunView[]>;
  };
  /** Effects and their outcomes. */
  readonly effects: { list(filter?: EffectListFilter): Promise<EffectView[]> };
  /** Compensations that are owed, done or stuck. */
  readonly obligations: { list(filter?: EffectListFilter): Promise<EffectView[]> };
  /** Open gates, oldest first. */
  readonly gates: { list(filter?: GateListFilter): Promise<OpenGate[]> };
  /** Timers of runs, both set and fired. */
  readonly timers: { list(filter?: { run?: string; limit?: number }): Promise<TimerRow[]> };
}

export function listsOf(store: Store, tenant: string): Lists {
  return {
    runs: {
      get: (id) => store.read.run(tenant, id),
      list: async (filter) => {
        for (const status of filter?.status ?? []) assertOneOf("runs.list", "status", status, runStatuses);
        return store.read.runs(tenant, filter);
      },
    },
    effects: { list: (filter = {}) => listEffects(store, tenant, "effect", filter) },
    obligations: { list: (filter = {}) => listEffects(store, tenant, "compensation", filter) },
    gates: { list: (filter = {}) => openGates(store, tenant, filter) },
    timers: { list: (filter = {}) => store.read.timers(tenant, filter) },
  };
}
