import { decode, isErased } from "../../base/codec.ts";
import { errorFields } from "../../base/reason.ts";
import type { Lease } from "../../lease/lease.ts";
import { type Handoff, releaseJournal } from "../../lease/release-journal.ts";
import { type AttemptHistory, attemptHistory } from "../../model/attempt.ts";
import { isTapeError } from "../../model/errors.ts";
import { isHashed, readable } from "../../model/payloads.ts";
import type { JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import type { EffectRow } from "../../model/rows.ts";
import type { EffectContext, EffectDefinition } from "../../sdk/effect.ts";
import { noStreams } from "../../sdk/stream.ts";
import { reportSettled } from "../core/report.ts";
import { type ConfirmedResult, leaveStorable } from "../effects/evidence.ts";
import { type ReactorDeps, retryDelayMs } from "./deps.ts";
import { type OperatorResolution, operatorResolution } from "./operator-resolution.ts";

/** A settlement with the statuses of an effect; {@link Item.settled} translates them for a compensation. */
export type Settlement = Pick<RecordData<"effect.settled">, "to" | "reason" | "value" | "error" | "absent">;

type Evidence = RecordData<"effect.evidence">;

/**
 * One effect under its own lease: its row, journal, inbox and the right to append. A reactor claims it, works, writes
 * under the token and releases it; the keeper renews the lease meanwhile.
 */
export class Item {
  readonly effect: EffectRow;
  readonly records: readonly JournalRecord[];
  readonly lease: Lease;
  readonly runId: string;
  /** How long the item had been due, or abandoned, when it was found. */
  readonly lagMs: number;
  readonly #deps: ReactorDeps;
  readonly #runEvidence: readonly JournalRecord[];
  #notes: readonly JournalRecord[];
  #head: number;
  #status: EffectRow["status"];
  #next: Handoff | undefined;
  #unserved = false;

  constructor(deps: ReactorDeps, lease: Lease, effect: EffectRow, read: ItemJournal, runId: string) {
    this.#deps = deps;
    this.lease = lease;
    this.effect = effect;
    this.records = read.records;
    this.#notes = read.notes;
    this.#runEvidence = read.runEvidence;
    this.runId = runId;
    this.#head = lease.term.head;
    this.#status = effect.status;
    this.lagMs = lease.term.lagMs ?? 0;
  }

  /** The status after what this term has written. */
  get status(): EffectRow["status"] {
    return this.#status;
  }

  /** Set once the item is released: the next reactor. */
  get handoff(): Handoff | undefined {
    return this.#next;
  }

  /** Parked, because this process does not have its definition. */
  get unserved(): boolean {
    return this.#unserved;
  }

  /** For a call: this process must be able to read them. */
  get args(): unknown {
    const about = { run: this.runId, effect: this.effect.name };
    const args = readable(this.#storedArgs, about);
    // Of an obligation that was armed without the key, each part is sealed alone.
    for (const part of this.isCompensation ? Object.values(args as object) : []) readable(part, about);
    return args;
  }

  /** As the store has them: an operator without the key settles an effect, too. */
  get #storedArgs(): unknown {
    return decode(this.effect.args);
  }

  get isCompensation(): boolean {
    return this.effect.role === "compensation";
  }

  /** The reactor that sends it; the reconciler observes it. */
  get actor(): "outbox" | "compensation" {
    return this.isCompensation ? "compensation" : "outbox";
  }

  /** The definition of the effect; undefined: this process does not have it. */
  get definition(): EffectDefinition | undefined {
    return this.effect.name === null ? undefined : this.#deps.runner.effects.get(this.effect.name);
  }

  /** The history of earlier attempts, including `added` records of this term. */
  history(added: readonly NewRecord[] = []): AttemptHistory {
    return attemptHistory([...this.records, ...added], this.effect.dispatch === "inline");
  }

  /** The run's outcome is decided: none of its effects may start any more. */
  async runIsEnding(): Promise<boolean> {
    const { store, tenant } = this.#deps;
    const run = await store.read.run(tenant, this.runId);
    return run === undefined || run.endedAt !== null || (run.cause ?? null) !== null;
  }

  /** Identifies the effect in the records of its own journal. */
  get ref(): { run: number; pos: number; sub: number } {
    const { run, pos, sub } = this.effect;
    return { run, pos, sub };
  }

  /** Terms in a row without a record about the effect, including this one. */
  get idleTerms(): number {
    const last = this.records.findLastIndex(({ kind }) => kind !== "term.started" && kind !== "term.ended");
    return this.records.slice(last + 1).filter(({ kind }) => kind === "term.started").length;
  }

  /** All evidence of late owners, oldest first. */
  get evidence(): readonly Evidence[] {
    const notes = [...this.#runEvidence, ...this.#notes];
    return notes.flatMap((note) => (note.kind === "effect.evidence" ? [note.data] : []));
  }

  /** An operator's confirmation that no process could settle yet: its value, and whether to compensate the effect. */
  get operatorVerdict(): { readonly value: unknown; readonly compensate: boolean } | undefined {
    const { as, value } = this.#resolution;
    return as === "confirmed" || as === "compensate" ? { value, compensate: as === "compensate" } : undefined;
  }

  /** The error of the last failed attempt, if the store has it. */
  get lastError(): unknown {
    const settled = this.records.findLast(({ data }) => (data as { error?: unknown }).error !== undefined);
    if (settled !== undefined) return (settled.data as { error?: unknown }).error;
    const { outcome } = this.effect;
    return outcome === null ? undefined : (decode(outcome) as { error?: unknown }).error;
  }

  /** An operator has requested an observation although the reconciler has given up. */
  get observeRequested(): boolean {
    return this.status === "STUCK" && this.#resolution.as === "observe";
  }

  /** The last operator resolution since the effect was last settled. */
  get #resolution(): OperatorResolution {
    return operatorResolution(this.records);
  }

  /** The function that observes the upstream, if the definition has one. */
  get observer(): ((args: never, fx: EffectContext) => unknown) | undefined {
    return this.isCompensation ? this.definition?.compensate?.observe : this.definition?.observe;
  }

  context(attempt: number, abortSignal: AbortSignal): EffectContext {
    const { key } = this.effect;
    const { runId, lease } = this;
    return {
      runId,
      key,
      token: lease.token,
      fence: lease.fence,
      attempt,
      abortSignal,
      businessKey: this.#businessKey,
      stream: () => {
        throw noStreams("an effect outside of its run's driver");
      },
    };
  }

  /** Stores of encrypted payloads have a hash of it: then it follows from the arguments. */
  get #businessKey(): string | undefined {
    const { businessKey } = this.effect;
    if (businessKey === null) return undefined;
    return isHashed(businessKey) ? this.definition?.businessKey?.(this.args as never) : businessKey;
  }

  /** The record of a settlement: of the effect, or of the obligation for a compensation. One that failed is STUCK. */
  settled(data: Settlement): NewRecord {
    const { ref } = this;
    if (!this.isCompensation) return { kind: "effect.settled", data: { ...ref, ...data } };
    const to = data.to === "CONFIRMED" ? "COMPENSATED" : data.to === "FAILED" ? "STUCK" : data.to;
    return { kind: "obligation.settled", data: { ...ref, ...data, to } };
  }

  /** Confirms the effect with its result, or with why that cannot be stored, and arms the obligation. */
  confirmed(reason: string, result: ConfirmedResult): NewRecord[] {
    if ("error" in result) {
      return [this.settled({ to: "CONFIRMED", reason, error: result.error }), ...this.armedObligation(undefined)];
    }
    const { value } = result;
    return [this.settled({ to: "CONFIRMED", reason, value }), ...this.armedObligation(value)];
  }

  /** The obligation that is armed with the confirmation. */
  armedObligation(result: unknown): NewRecord[] {
    const { definition } = this;
    if (this.isCompensation || definition?.compensate === undefined) return [];
    const { name, compensate } = definition;
    const data = { ...this.#obligationOf(result), name, semantics: compensate.semantics };
    return [{ kind: "obligation.armed", data }];
  }

  /** The same, but due at once and whatever the outcome of the run. Without `compensate` an operator must do it. */
  dueObligation(result: unknown): NewRecord[] {
    const { definition } = this;
    // Of an erased run nothing is left that a call could be made with.
    const compensate = isErased(this.#storedArgs) ? undefined : definition?.compensate;
    const data = { ...this.#obligationOf(result), semantics: compensate?.semantics ?? "non_idempotent" } as const;
    return [
      { kind: "obligation.surplus", data: compensate === undefined ? data : { ...data, name: definition!.name } },
    ];
  }

  #obligationOf(result: unknown) {
    const { run, pos } = this.ref;
    return { run, pos, sub: 1, key: `${this.effect.key}:compensation`, args: { args: this.#storedArgs, result } };
  }

  async write(records: readonly NewRecord[]): Promise<void> {
    this.lease.assert();
    const { head } = await this.#deps.store.fenced.append(this.lease.fence, { after: this.#head, records });
    this.#head = head;
    this.lease.moved();
    for (const record of records) {
      reportSettled(this.#deps.log, { run: this.runId, effect: this.effect.name }, record);
      if (record.kind === "effect.settled" || record.kind === "obligation.settled") this.#status = record.data.to;
      if (record.kind === "effect.dispatched") this.#status = this.isCompensation ? "COMMITTED" : "DISPATCHED";
    }
  }

  /**
   * Writes the last records of this term and the handoff. If notes arrived meanwhile, the store rejects the write as a
   * whole. Then `onNotes` decides again; without it no note matters, and the same records are written again.
   */
  async finish(records: readonly NewRecord[], next: Handoff = {}, onNotes?: () => Promise<void>): Promise<void> {
    const { waitingFor, ...rest } = next;
    for (;;) {
      const notesTaken = this.#notes.at(-1)?.seq ?? 0;
      const handoff = waitingFor === undefined ? rest : { ...rest, waitingFor: [...waitingFor] };
      const data = { reason: "released", notesTaken, term: this.lease.stats(), ...handoff } as const;
      try {
        await this.write([...records, { kind: "term.ended", data }]);
        break;
      } catch (error) {
        if (!isTapeError(error, "TAPE_NOTES_PENDING")) throw error;
      }
      await this.#readNotes();
      if (onNotes !== undefined) return onNotes();
    }
    this.#next = next;
    this.lease.end("released");
  }

  /** Parks an item that this process cannot handle; the record and the log say what is missing. */
  park(nextReactor: string, missing: string): Promise<void> {
    const { log } = this.#deps;
    this.#unserved = true;
    const next = `start a process whose createRunner({ effects, connectors }) has ${missing}`;
    log("warn", "reactor.no_handler", { nextReactor, effect: this.effect.name, run: this.runId, missing, next });
    const delayMs = retryDelayMs(this.#deps, this.idleTerms, { run: this.runId, effect: this.effect.name });
    return this.finish([], { nextReactor, delayMs, waitingFor: [`a process that has ${missing}`] });
  }

  /** Releases an item that is no longer this reactor's: to the reactor of its status, or to none. */
  handOff(): Promise<void> {
    return this.finish([], nextReactorOf(this.status, this.actor));
  }

  /** Releases an item whose work failed, for a later retry. Returns whether the store acknowledged. */
  async fail(): Promise<boolean> {
    const { store, tenant } = this.#deps;
    // An operator's resolution waits for a reconciler that can settle or observe the effect.
    const resolved = this.operatorVerdict !== undefined || this.observeRequested;
    const { nextReactor } = resolved ? { nextReactor: "reconciler" } : nextReactorOf(this.status, this.actor);
    const delayMs = retryDelayMs(this.#deps, this.idleTerms, { run: this.runId, effect: this.effect.name });
    const next = nextReactor === undefined ? {} : { nextReactor, delayMs };
    const acknowledged = await releaseJournal(store, tenant, this.lease, this.#head, next);
    if (acknowledged) this.#next = next;
    return acknowledged;
  }

  /** A fenced owner may not write the outcome, so it leaves its result as evidence. */
  async leaveEvidence(evidence: { happened: boolean; value?: unknown; error?: unknown }): Promise<void> {
    const { store, log } = this.#deps;
    const { tenant, token, nonce } = this.lease.fence;
    const about = { run: this.runId, effect: this.effect.name };
    try {
      const of = { ...this.ref, token, nonce };
      await leaveStorable(evidence, (claim) => store.intake.leaveEvidence(tenant, of, claim));
      log("info", "effect.evidence_recorded", about);
    } catch (error) {
      log("warn", "effect.evidence_refused", { ...about, ...errorFields(error) });
    }
  }

  async #readNotes(): Promise<void> {
    const { store, tenant } = this.#deps;
    const target = { journal: this.lease.term.journal };
    const from = (this.#notes.at(-1)?.seq ?? 0) + 1;
    this.#notes = [...this.#notes, ...(await store.read.journal(tenant, target, { from, inbox: true }))];
  }
}

export interface ItemJournal {
  readonly records: readonly JournalRecord[];
  readonly notes: readonly JournalRecord[];
  /** Evidence in the inbox of the run, from the time when the run decided about the effect. */
  readonly runEvidence: readonly JournalRecord[];
}

/** The next reactor for an effect in this status. An unfinished attempt belongs to the reconciler. */
function nextReactorOf(status: EffectRow["status"], actor: string): { nextReactor?: string } {
  if (status === "PENDING") return { nextReactor: actor };
  if (status === "DISPATCHED" || status === "COMMITTED" || status === "UNKNOWN") return { nextReactor: "reconciler" };
  return {};
}
