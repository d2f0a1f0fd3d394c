import type { Change } from "../src/model/changes.ts";
import type { RevertibleMap } from "./revertible-map.ts";

/** The place of a run in its queue, as the records explain it. */
export interface SlotRow {
  journal: number;
  tenant: string;
  /** Empty: it is in no queue, and only starts later. */
  queue: string;
  key: string;
  state: "DELAYED" | "QUEUED" | "HELD" | "PARKED";
  /** It has run before. */
  hasRun: boolean;
}

/**
 * Where runs are in their queues: the table of transitions in docs/queues.md, written a second time. `counts` is the
 * configuration of the queues, by tenant and name.
 */
export class SlotTable {
  readonly rows: RevertibleMap<number, SlotRow>;
  readonly #counts: ReadonlyMap<string, string>;

  constructor(rows: RevertibleMap<number, SlotRow>, counts: ReadonlyMap<string, string>) {
    this.rows = rows;
    this.#counts = counts;
  }

  /** Whether a run may not be found by recovery: it waits for its queue. */
  isBack(journal: number): boolean {
    const slot = this.rows.get(journal);
    return slot !== undefined && slot.state !== "HELD";
  }

  apply(change: Extract<Change, { do: `slot.${string}` }>, tenant: string): boolean {
    if (change.do === "slot.create") return this.#create(change, tenant);
    return change.do === "slot.assert_unnested" || this.#set(change); // nesting depends on limits, which are no records
  }

  #create(change: Extract<Change, { do: "slot.create" }>, tenant: string): boolean {
    const { journal, queue, key, state } = change;
    if (queue !== "" && !this.#counts.has(`${tenant}/${queue}`)) return false;
    this.rows.set(journal, { journal, tenant, queue, key, state, hasRun: false });
    return true;
  }

  /** Why this term may not start; undefined: it may. */
  startTerm(journal: number, admitted: boolean, reason: string): string | undefined {
    const slot = this.rows.get(journal);
    if (admitted) {
      if (slot?.state !== "QUEUED") return `it is admitted from ${slot?.state ?? "nowhere"}`;
      this.rows.change(journal, { state: "HELD", hasRun: true });
      return undefined;
    }
    const waits = slot?.state === "QUEUED" || slot?.state === "DELAYED";
    return waits && reason !== "manual" ? `it passes its queue, where it is ${slot.state}` : undefined;
  }

  #set({ journal, event }: Extract<Change, { do: "slot.set" }>): boolean {
    const slot = this.rows.get(journal);
    if (slot === undefined) return false;
    const keeps = this.#counts.get(`${slot.tenant}/${slot.queue}`) === "started";
    if (event.of === "ended") this.rows.delete(journal);
    else if (slot.state === "HELD" && !keeps) {
      if (event.of === "decided") this.rows.delete(journal);
      if (event.of === "released" && !event.wanted) this.rows.change(journal, { state: "PARKED" });
    } else if (slot.state === "PARKED" && event.of === "released" && event.wanted) {
      this.rows.change(journal, { state: "QUEUED" });
    }
    return true;
  }

  /** A note arrives. Returns "leaves" if the run has left the queue by it. */
  note(journal: number, kind: string, purpose: string | undefined): "leaves" | undefined {
    const slot = this.rows.get(journal);
    if (slot === undefined || kind === "start.moved") return undefined;
    const stops = kind === "cancel.requested" || purpose === "expire";
    if (slot.state === "PARKED") this.rows.change(journal, { state: "QUEUED" });
    else if (stops && !slot.hasRun && slot.state !== "HELD") {
      this.rows.delete(journal);
      return "leaves";
    } else if (slot.state === "DELAYED" && purpose === "start") {
      if (slot.queue !== "") this.rows.change(journal, { state: "QUEUED" });
      else {
        this.rows.delete(journal);
        return "leaves";
      }
    }
    return undefined;
  }

  /** Running and waiting runs by key, of one queue. */
  keysOf(tenant: string, queue: string): ReadonlyMap<string, { running: number; waiting: number }> {
    const keys = new Map<string, { running: number; waiting: number }>();
    for (const slot of this.rows.values()) {
      if (slot.tenant !== tenant || slot.queue !== queue) continue;
      const counts = keys.get(slot.key) ?? { running: 0, waiting: 0 };
      if (slot.state === "HELD") counts.running++;
      if (slot.state === "QUEUED") counts.waiting++;
      keys.set(slot.key, counts);
    }
    return keys;
  }
}
