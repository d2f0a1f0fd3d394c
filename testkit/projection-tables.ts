import { type Change, isRequired } from "../src/model/changes.ts";
import * as generations from "./projection-generations.ts";
import { changeBudget, claimKey } from "./projection-keys.ts";
import { LabelTable } from "./projection-labels.ts";
import {
  type BudgetState,
  type ClaimState,
  type EffectState,
  type GateState,
  type LeaseState,
  type PublishedState,
  type ReplyState,
  type RunState,
  routed,
  show,
  type TimerState,
} from "./projection-rows.ts";
import { type SlotRow, SlotTable } from "./projection-slots.ts";
import { RevertibleMap, Rollback } from "./revertible-map.ts";

const openObligations = ["PENDING", "COMMITTED", "UNKNOWN", "STUCK"];
const finals = ["COMPLETED", "FAILED", "CANCELLED", "COMPENSATED"];
const includesName = (list: string, name: string): boolean => list.split(",").includes(name);
const isUnsent = ({ role, status, uncertain, semantics }: EffectState): boolean =>
  role === "effect" && status === "PENDING" && (!uncertain || semantics === "read");
const keyOf = (...parts: readonly (string | number)[]): string => JSON.stringify(parts);

/**
 * The tables as the records explain them: an independent interpreter of the Change kinds that shares no code with a
 * store. Times are left out, because a record does not contain the time at which its transaction wrote the row.
 */
export class ProjectionTables {
  /** Changes of all tables since the last record that fitted. */
  readonly rollback = new Rollback();
  readonly runs = new RevertibleMap<number, RunState>(this.rollback);
  readonly leases = new RevertibleMap<number, LeaseState>(this.rollback);
  readonly effects = new RevertibleMap<string, EffectState>(this.rollback);
  readonly gates = new RevertibleMap<string, GateState>(this.rollback);
  readonly published = new RevertibleMap<string, PublishedState>(this.rollback);
  readonly replies = new RevertibleMap<string, ReplyState>(this.rollback);
  /** Numbers of the signals in each inbox. */
  readonly signals = new RevertibleMap<string, { run: number }>(this.rollback);
  readonly timers = new RevertibleMap<string, TimerState>(this.rollback);
  readonly budgets = new RevertibleMap<string, BudgetState>(this.rollback);
  readonly claims = new RevertibleMap<string, ClaimState>(this.rollback);
  /** Every business key that was ever claimed, so that dropped ones are checked too. */
  readonly claimed = new RevertibleMap<string, ClaimState>(this.rollback);
  readonly labels = new LabelTable(this.rollback);
  /**
   * Records that changes write into other journals, matched with those in the feed. Positive: a change wrote it, and it
   * was not seen yet. Negative: seen, but not explained yet. Either may come first in the feed.
   */
  readonly balance = new RevertibleMap<string, number>(this.rollback);
  readonly slots: SlotTable;

  /** `counts`: what each queue counts, by tenant and name. */
  constructor(counts: ReadonlyMap<string, string>) {
    this.slots = new SlotTable(new RevertibleMap<number, SlotRow>(this.rollback), counts);
  }

  /** Applies a change. Returns what is wrong with it, or undefined. */
  apply(change: Change): string | undefined {
    const done = this.#perform(change);
    return done || !isRequired(change) ? undefined : `${change.do} does not apply: ${show(change)}`;
  }

  count(inside: "journal" | "inbox", record: { journal: number; kind: string; body: string }, by: 1 | -1): void {
    const key = `${record.kind} in ${inside} ${record.journal}: ${record.body}`;
    const left = (this.balance.get(key) ?? 0) + by;
    if (left === 0) this.balance.delete(key);
    else this.balance.set(key, left);
  }

  effectsOf(run: number): EffectState[] {
    return [...this.effects.values()].filter((effect) => effect.run === run);
  }

  addSignal(run: number, note: number): void {
    this.signals.set(keyOf(run, note), { run });
  }

  forget(journal: number): void {
    this.runs.delete(journal);
    this.slots.rows.delete(journal);
    for (const [item, lease] of this.leases) if (lease.run === journal) this.leases.delete(item);
    const waits = [this.gates, this.published, this.replies, this.signals, this.timers];
    for (const table of [this.effects, ...waits, this.budgets, this.claims] as Map<string, { run: number }>[]) {
      for (const [key, row] of table) if (row.run === journal) table.delete(key);
    }
  }

  #perform(change: Change): boolean {
    if (generations.isOfGenerations(change)) return generations.perform(this, change);
    switch (change.do) {
      case "run.create":
        return this.#createRun(change);
      case "lease.create": {
        const { journal, kind, run, token, nextReactor, maxStallMs } = change;
        const tenant = change.tenant ?? this.leases.get(change.source ?? 0)?.tenant ?? "";
        const blank = { owner: null, notes: 0, open: true, doomed: false, ...generations.firstGeneration };
        const queued = change.queue !== null;
        this.leases.set(journal, { kind, tenant, run, token, nextReactor, ...blank, maxStallMs, queued });
        return true;
      }
      case "labels.create":
        return true; // run.create has the labels
      case "labels.set":
        return this.labels.change(this.runs, change);
      case "lease.limit":
      case "lease.pin": {
        const { do: _do, journal, ...set } = change;
        return this.leases.change(journal, set);
      }
      case "slot.create":
      case "slot.assert_unnested":
      case "slot.set":
        return this.slots.apply(change, this.runs.get(change.journal)?.tenant ?? "");
      case "record.create":
        this.count("journal", change, 1);
        return true;
      case "run.phase":
        return this.#setRunPhase(change);
      case "run.assert_settled":
        return this.#isSettled(change.journal, change.armed);
      case "note.create": {
        const line = change.orAncestor ? this.#lineOf(change.journal) : [change.journal];
        const journal = line.find((one) => this.leases.get(one)?.open);
        if (journal === undefined) return false;
        this.count("inbox", { ...change, journal }, 1);
        return true;
      }
      case "lease.wake": {
        const lease = this.leases.get(change.journal);
        const nextReactor = lease && routed(lease, change.nextReactor);
        if (lease?.owner === null && lease.open) this.leases.change(change.journal, { nextReactor: nextReactor! });
        return true;
      }
      case "lease.release":
        return this.#release(change);
      case "effect.create":
        return this.#createEffect(change);
      case "effect.status":
        return this.#setEffectStatus(change);
      case "effects.withdraw":
      case "effect.withdraw": {
        const only = change.do === "effect.withdraw" ? change.pos : undefined;
        const isMeant = (e: EffectState) => e.run === change.run && (only === undefined || e.pos === only);
        return this.#setStatuses(change.run, (e) => isMeant(e) && isUnsent(e), "WITHDRAWN");
      }
      case "item.sweep": {
        const { item, status } = this.effects.get(keyOf(change.run, change.pos, 0)) ?? {};
        if (status !== "WITHDRAWN" || this.leases.get(item ?? 0)?.owner !== null) return false;
        return this.leases.change(item ?? 0, { nextReactor: null });
      }
      case "obligations.make_due_below":
        return this.#setStatuses(change.run, (e) => e.status === "ARMED" && this.#isBelow(e.run, change), "PENDING");
      case "obligations.make_due":
        return this.#setStatuses(
          change.run,
          ({ run, pos, sub, status }) =>
            status === "ARMED" &&
            (change.pos === null ? this.#lineOf(run).includes(change.run) : run === change.run) &&
            (change.pos === null || (pos === change.pos && sub === change.sub)),
          "PENDING",
        );
      case "obligations.discharge":
        return this.#setStatuses(change.run, (e) => e.root === change.run && e.status === "ARMED", "DISCHARGED");
      case "obligations.release_next":
        return this.#releaseNextObligation(change.run);
      case "items.sweep":
        for (const { item, status, role, uncertain } of this.effectsOf(change.run)) {
          if (this.leases.get(item ?? 0)?.owner !== null || role !== "effect") continue;
          if (status === "WITHDRAWN") this.leases.change(item ?? 0, { nextReactor: null });
          if (status === "PENDING" && uncertain) this.leases.change(item ?? 0, { nextReactor: "reconciler" });
        }
        return true;
      case "business_key.claim":
        return claimKey(this, change);
      case "business_key.replace":
        this.#dropClaims(({ scope, businessKey }) => scope === change.scope && businessKey === change.businessKey);
        return claimKey(this, { ...change, do: "business_key.claim" });
      case "business_key.drop":
        return this.#dropClaims(({ run, pos }) => run === change.run && pos === change.pos);
      case "business_keys.sweep":
        return this.#dropClaims(
          ({ run, pos }) => run === change.run && this.effects.get(keyOf(run, pos, 0))?.status === "WITHDRAWN",
        );
      case "gate.create": {
        const { run, pos, name, binds, payload, approvers, callback } = change;
        if (this.gates.has(keyOf(run, pos)) || this.runs.get(run)?.phase !== "LIVE") return false;
        const row = { run, pos, name, binds, payload, approvers, status: "OPEN", value: null };
        this.gates.set(keyOf(run, pos), callback === null ? row : { ...row, callback });
        return true;
      }
      case "gate.status": {
        const key = keyOf(change.run, change.pos);
        if (this.gates.get(key)?.status !== "OPEN") return false;
        return this.gates.change(key, { status: change.to, value: change.value });
      }
      case "published.put": {
        const { run, name, value, seq } = change;
        this.published.set(keyOf(run, name), { run, name, value, seq });
        return true;
      }
      case "reply.create": {
        const { run, note, body } = change;
        if (this.replies.has(keyOf(run, note)) || !this.signals.has(keyOf(run, note))) return false;
        this.replies.set(keyOf(run, note), { run, note, body });
        return true;
      }
      case "timer.create": {
        const { run, pos, purpose } = change;
        if (this.timers.has(keyOf(run, pos, purpose))) return false;
        this.timers.set(keyOf(run, pos, purpose), { run, pos, purpose, status: "SET" });
        return true;
      }
      case "timer.status": {
        const key = keyOf(change.run, change.pos, change.purpose);
        if (this.timers.get(key)?.status !== "SET") return false;
        return this.timers.change(key, { status: change.to });
      }
      case "timer.fire":
        return this.#perform({ ...change, do: "timer.status", to: "FIRED", required: true });
      case "budget.create": {
        const { run, unit, cap } = change;
        this.budgets.set(keyOf(run, unit), { run, unit, cap, reserved: 0, spent: 0 });
        return true;
      }
      case "budget.reserve":
        return changeBudget(this, change.by, change.run, change.unit, change.amount, 0);
      case "budget.charge":
        return changeBudget(this, change.by, change.run, change.unit, -change.reserved, change.spent);
      case "gate.wait_again":
        return true; // no view shows which signal came first
      case "value.put":
      case "value.log":
        return true; // clients write values without a record, so records do not explain them
    }
  }

  #createRun(change: Extract<Change, { do: "run.create" }>): boolean {
    const { journal, id, workflow, version, inputHash, labels, parent, parentPos, source } = change;
    const above = parent === null ? undefined : this.runs.get(parent);
    const starter = source === null ? undefined : this.runs.get(source);
    const tenant = change.tenant ?? above?.tenant ?? starter?.tenant ?? "";
    if (starter !== undefined && starter.phase !== "LIVE") return false;
    if (above !== undefined && above.phase !== "LIVE") return false;
    if ([...this.runs.values()].some((run) => run.tenant === tenant && run.id === id)) return false;
    this.labels.add(tenant, labels);
    const root = above?.root ?? journal;
    const blank = { phase: "LIVE", cause: null, stuckFrom: null, outcome: null, ended: false } as const;
    const row = { journal, tenant, id, workflow, version, inputHash, labels, parent, parentPos, root };
    this.runs.set(journal, { ...row, ...blank });
    return true;
  }

  #setRunPhase({ journal, to, from, decided, cause, outcome, parent }: Extract<Change, { do: "run.phase" }>): boolean {
    const run = this.runs.get(journal);
    if (run === undefined || run.ended || !includesName(from, run.phase)) return false;
    if (run.phase === "STUCK" && run.stuckFrom !== to) return false;
    if (run.phase === "ENDING" && decided !== null && !includesName(decided, run.cause ?? "")) return false;
    const ends = finals.includes(to);
    if (ends && run.parent !== parent) return false;
    const decision = run.phase === "LIVE" ? { cause, outcome } : {};
    return this.runs.change(journal, {
      ...decision,
      stuckFrom: to === "STUCK" ? run.phase : null,
      ended: ends,
      phase: to,
    });
  }

  #isSettled(journal: number, armed: boolean): boolean {
    const owes = ({ run, root, role, surplus, status }: EffectState) =>
      role === "effect"
        ? run === journal && generations.openEffects.includes(status)
        : (run === journal || root === journal) &&
          !surplus &&
          (openObligations.includes(status) || (armed && status === "ARMED"));
    if ([...this.effects.values()].some(owes)) return false;
    if ([...this.gates.values()].some(({ run, status }) => run === journal && status === "OPEN")) return false;
    if ([...this.timers.values()].some(({ run, status }) => run === journal && status === "SET")) return false;
    return ![...this.runs.values()].some(({ parent, ended }) => parent === journal && !ended);
  }

  #release({ journal, notesTaken: taken, nextReactor, open }: Extract<Change, { do: "lease.release" }>): boolean {
    const lease = this.leases.get(journal);
    if (lease === undefined || (lease.kind !== "name" && lease.notes !== taken)) return false;
    const next = this.slots.isBack(journal) ? null : routed(lease, nextReactor);
    return this.leases.change(journal, {
      token: lease.token + 1n,
      owner: null,
      nextReactor: next,
      open,
      doomed: false,
    });
  }

  #createEffect({ do: _do, source, ...effect }: Extract<Change, { do: "effect.create" }>): boolean {
    const run = this.runs.get(effect.run);
    const key = keyOf(effect.run, effect.pos, effect.sub);
    if (run === undefined || this.effects.has(key)) return false;
    if (source !== effect.run && this.leases.get(source)?.run !== effect.run) return false;
    if (effect.role === "effect" && run.phase !== "LIVE") return false;
    const blank = { attempt: 0, attemptToken: null, reason: null, outcome: null, uncertain: false };
    this.effects.set(key, { ...effect, root: run.root, ...blank });
    return true;
  }

  #setEffectStatus(change: Extract<Change, { do: "effect.status" }>): boolean {
    const key = keyOf(change.run, change.pos, change.sub);
    const effect = this.effects.get(key);
    const { to, by, from, newAuthority } = change;
    if (effect === undefined || effect.authority !== by || !includesName(from, effect.status)) return false;
    const observed = effect.role === "effect" && (effect.status === "UNKNOWN" || effect.status === "STUCK");
    const sure =
      effect.semantics !== "non_idempotent" ||
      change.reason === "not_sent" ||
      change.reason === "operator" ||
      (change.reason === "ABSENT" && observed);
    if (to === "PENDING" && !sure) return false;
    const isKnown = effect.status === "PENDING" && !effect.uncertain && change.reason !== "long_pending";
    if (to === "UNKNOWN" && isKnown) return false;
    return this.effects.change(key, {
      status: to,
      authority: newAuthority ?? effect.authority,
      item: newAuthority ?? effect.item,
      attempt: change.attempt ?? effect.attempt,
      attemptToken: change.token ?? effect.attemptToken,
      reason: change.reason ?? effect.reason,
      outcome: change.outcome ?? effect.outcome,
      // From the reason, not from change.uncertain: otherwise an error in the model's rule would repeat itself here.
      uncertain: effect.uncertain || (to === "PENDING" && change.reason !== "not_sent" && change.reason !== "ABSENT"),
    });
  }

  /** The run, its parent, and so on up to the root. */
  #lineOf(run: number): number[] {
    const parent = this.runs.get(run)?.parent ?? null;
    return parent === null ? [run] : [run, ...this.#lineOf(parent)];
  }

  #isBelow(run: number, { run: parent, pos }: { readonly run: number; readonly pos: number }): boolean {
    const line = this.#lineOf(run).map((one) => this.runs.get(one));
    return line.some((one) => one?.parent === parent && one.parentPos === pos);
  }

  #setStatuses(_run: number, which: (effect: EffectState) => boolean, to: EffectState["status"]): boolean {
    const chosen = [...this.effects].filter(([, effect]) => which(effect));
    for (const [key] of chosen) this.effects.change(key, { status: to });
    return chosen.length > 0;
  }

  #releaseNextObligation(run: number): boolean {
    const chain = [...this.effects.values()].filter(
      (e) =>
        this.#lineOf(e.run).includes(run) &&
        e.role === "compensation" &&
        !e.surplus &&
        openObligations.includes(e.status),
    );
    for (const one of chain) {
      const isNewer = (n: EffectState) =>
        n.run === one.run && (n.pos > one.pos || (n.pos === one.pos && n.sub > one.sub));
      const lease = this.leases.get(one.item ?? 0);
      if (one.status !== "PENDING" || chain.some(isNewer) || lease === undefined) continue;
      if (lease.owner === null && lease.nextReactor === null)
        this.leases.change(one.item ?? 0, { nextReactor: "compensation" });
    }
    return true;
  }

  #dropClaims(which: (claim: ClaimState) => boolean): boolean {
    for (const [key, claim] of this.claims) if (which(claim)) this.claims.delete(key);
    return true;
  }
}
