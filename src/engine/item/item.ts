import { decode } from "../../base/codec.ts";
import { errorFields } from "../../base/reason.ts";
import type { Lease } from "../../lease/lease.ts";
import { type Handoff, releaseJournal } from "../../lease/release-journal.ts";
import { type AttemptHistory, attemptHistory } from "../../model/attempt.ts";
import { isTapeError } from "../../model/errors.ts";
import type { JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import type { EffectRow } from "../../model/rows.ts";
import type { EffectContext, EffectDefinition } from "../../sdk/effect.ts";
import { reportSettled } from "../core/report.ts";
import { type ConfirmedResult, leaveSaid } from "../effects/evidence.ts";
import { type ReactorDeps, retryDelayMs } from "./deps.ts";
import { type OperatorWord, operatorWord } from "./operator-word.ts";

/** A verdict in an act's words; an inverse has its own, see {@link Item.settled}. */
export type Settlement = Pick<RecordData<"effect.settled">, "to" | "reason" | "value" | "error">;

type Evidence = RecordData<"effect.evidence">;

/**
 * One effect under its own lease: its row, its journal, its inbox, and the pen. A reactor finds it, acquires it, works,
 * writes under the token, and gives it back; the keeper renews meanwhile.
 */
export class Item {
  readonly effect: EffectRow;
  readonly records: readonly JournalRecord[];
  readonly lease: Lease;
  readonly runId: string;
  /** How long it had been due, or abandoned, when it was found. */
  readonly lagMs: number;
  readonly #deps: ReactorDeps;
  readonly #overheard: readonly JournalRecord[];
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
    this.#overheard = read.runEvidence;
    this.runId = runId;
    this.#head = lease.term.head;
    this.#status = effect.status;
    this.lagMs = lease.term.lagMs ?? 0;
  }

  /** As of what this term has written. */
  get status(): EffectRow["status"] {
    return this.#status;
  }

  /** Set once it is given back: who is wanted next. */
  get handoff(): Handoff | undefined {
    return this.#next;
  }

  /** Parked, because nobody here can go on with it. */
  get unserved(): boolean {
    return this.#unserved;
  }

  get args(): unknown {
    return decode(this.effect.args);
  }

  get isCompensation(): boolean {
    return this.effect.role === "compensation";
  }

  /** The reactor that acts on it, as against the one that finds out what became of it. */
  get actor(): "outbox" | "compensation" {
    return this.isCompensation ? "compensation" : "outbox";
  }

  /** The definition by which this effect is carried out; undefined: this process does not know it. */
  get definition(): EffectDefinition | undefined {
    return this.effect.name === null ? undefined : this.#deps.runner.effects.get(this.effect.name);
  }

  /** What the attempts before this term have left; `more`: and what this term has found of them. */
  history(more: readonly NewRecord[] = []): AttemptHistory {
    return attemptHistory([...this.records, ...more], this.effect.dispatch === "inline");
  }

  /** The run's outcome is decided: nothing of it is started any more. */
  async runIsEnding(): Promise<boolean> {
    const { store, tenant } = this.#deps;
    const run = await store.read.run(tenant, this.runId);
    return run === undefined || run.endedAt !== null || (run.cause ?? null) !== null;
  }

  /** Names the effect inside its own journal's records. */
  get ref(): { run: number; pos: number; sub: number } {
    const { run, pos, sub } = this.effect;
    return { run, pos, sub };
  }

  /** Terms that came and went without a word about the effect, this one included. */
  get idleTerms(): number {
    const last = this.records.findLastIndex(({ kind }) => kind !== "term.started" && kind !== "term.ended");
    return this.records.slice(last + 1).filter(({ kind }) => kind === "term.started").length;
  }

  /** Everything that late owners have said, oldest first. */
  get evidence(): readonly Evidence[] {
    const notes = [...this.#overheard, ...this.#notes];
    return notes.flatMap((note) => (note.kind === "effect.evidence" ? [note.data] : []));
  }

  /** What a person has said of it where nobody could settle it: that it happened, what it answered, and whether to undo it. */
  get operatorVerdict(): { readonly value: unknown; readonly undo: boolean } | undefined {
    const { as, value } = this.#word;
    return as === "confirmed" || as === "compensate" ? { value, undo: as === "compensate" } : undefined;
  }

  /** What the last attempt that failed said, as far as the store knows. */
  get lastError(): unknown {
    const settled = this.records.findLast(({ data }) => (data as { error?: unknown }).error !== undefined);
    if (settled !== undefined) return (settled.data as { error?: unknown }).error;
    const { outcome } = this.effect;
    return outcome === null ? undefined : (decode(outcome) as { error?: unknown }).error;
  }

  /** A person wants the world looked at, although nobody would by themselves any more. */
  get observeRequested(): boolean {
    return this.status === "STUCK" && this.#word.as === "observe";
  }

  /** What the last person said since it was last settled. */
  get #word(): OperatorWord {
    return operatorWord(this.records);
  }

  /** Looks at the world, if its definition says how. */
  get observer(): ((args: never, fx: EffectContext) => unknown) | undefined {
    return this.isCompensation ? this.definition?.compensate?.observe : this.definition?.observe;
  }

  context(attempt: number, abortSignal: AbortSignal): EffectContext {
    const { key, businessKey } = this.effect;
    const { runId, lease } = this;
    return {
      runId,
      key,
      token: lease.token,
      fence: lease.fence,
      attempt,
      abortSignal,
      businessKey: businessKey ?? undefined,
    };
  }

  /** An inverse speaks of obligations, an act of effects; the steps are the same. What failed to be undone is stuck. */
  settled(data: Settlement): NewRecord {
    const { ref } = this;
    if (!this.isCompensation) return { kind: "effect.settled", data: { ...ref, ...data } };
    const to = data.to === "CONFIRMED" ? "COMPENSATED" : data.to === "FAILED" ? "STUCK" : data.to;
    return { kind: "obligation.settled", data: { ...ref, ...data, to } };
  }

  /** It happened: its result, or why that cannot be stored, and the obligation to undo it. One rule for every way to know. */
  confirmed(reason: string, result: ConfirmedResult): NewRecord[] {
    if ("error" in result) {
      return [this.settled({ to: "CONFIRMED", reason, error: result.error }), ...this.armedObligation(undefined)];
    }
    const { value } = result;
    return [this.settled({ to: "CONFIRMED", reason, value }), ...this.armedObligation(value)];
  }

  /** The obligation to undo it, armed with the confirmation. */
  armedObligation(result: unknown): NewRecord[] {
    const { definition } = this;
    if (this.isCompensation || definition?.compensate === undefined) return [];
    const { name, compensate } = definition;
    return [
      { kind: "obligation.armed", data: { ...this.#compensationOf(result), name, semantics: compensate.semantics } },
    ];
  }

  /** The same, due at once and whatever becomes of the run. Where nobody knows how to undo it, a person must. */
  dueObligation(result: unknown): NewRecord[] {
    const { definition } = this;
    const undo = definition?.compensate;
    const data = { ...this.#compensationOf(result), semantics: undo?.semantics ?? "non_idempotent" } as const;
    return [{ kind: "obligation.surplus", data: undo === undefined ? data : { ...data, name: definition!.name } }];
  }

  #compensationOf(result: unknown) {
    const { run, pos } = this.ref;
    return { run, pos, sub: 1, key: `${this.effect.key}:compensation`, args: { args: this.args, result } };
  }

  async write(records: readonly NewRecord[]): Promise<void> {
    this.lease.assert();
    const { head } = await this.#deps.store.fenced.append(this.lease.fence, { after: this.#head, records });
    this.#head = head;
    for (const record of records) {
      reportSettled(this.#deps.log, { run: this.runId, effect: this.effect.name }, record);
      if (record.kind === "effect.settled" || record.kind === "obligation.settled") this.#status = record.data.to;
      if (record.kind === "effect.dispatched") this.#status = this.isCompensation ? "COMMITTED" : "DISPATCHED";
    }
  }

  /**
   * The last records of this term, and who is wanted next. Notes that arrived meanwhile refuse them as a whole: then
   * `heard` decides anew, or, where no note can change anything, the same is written again.
   */
  async finish(records: readonly NewRecord[], next: Handoff = {}, heard?: () => Promise<void>): Promise<void> {
    const { waitingFor, ...more } = next;
    for (;;) {
      const notesTaken = this.#notes.at(-1)?.seq ?? 0;
      const said = waitingFor === undefined ? more : { ...more, waitingFor: [...waitingFor] };
      const data = { reason: "released", notesTaken, term: this.lease.stats(), ...said } as const;
      try {
        await this.write([...records, { kind: "term.ended", data }]);
        break;
      } catch (error) {
        if (!isTapeError(error, "TAPE_NOTES_PENDING")) throw error;
      }
      await this.#onNote();
      if (heard !== undefined) return heard();
    }
    this.#next = next;
    this.lease.end("given back");
  }

  /** Nobody here can go on with it: it waits, visibly, for somebody who can. */
  park(nextReactor: string, what: string): Promise<void> {
    const { log } = this.#deps;
    this.#unserved = true;
    const next = `start a process whose createRunner({ effects, connectors }) has ${what}`;
    log("warn", "reactor.no_handler", { nextReactor, effect: this.effect.name, run: this.runId, missing: what, next });
    const delayMs = retryDelayMs(this.#deps, this.idleTerms, { run: this.runId, effect: this.effect.name });
    return this.finish([], { nextReactor, delayMs, waitingFor: [`a process that has ${what}`] });
  }

  /** Not this reactor's business any more: to whom it belongs now, or to nobody. */
  handOff(): Promise<void> {
    return this.finish([], nextReactorOf(this.status, this.actor));
  }

  /** The work went wrong. */
  async fail(): Promise<boolean> {
    const { store, tenant } = this.#deps;
    // What a person has said of it waits for whoever can settle it, or look.
    const asked = this.operatorVerdict !== undefined || this.observeRequested;
    const { nextReactor } = asked ? { nextReactor: "reconciler" } : nextReactorOf(this.status, this.actor);
    const delayMs = retryDelayMs(this.#deps, this.idleTerms, { run: this.runId, effect: this.effect.name });
    const next = nextReactor === undefined ? {} : { nextReactor, delayMs };
    const told = await releaseJournal(store, tenant, this.lease, this.#head, next);
    if (told) this.#next = next;
    return told;
  }

  /** A fenced-out owner may not write the outcome, but what it knows is worth keeping. */
  async leaveEvidence(evidence: { happened: boolean; value?: unknown; error?: unknown }): Promise<void> {
    const { store, log } = this.#deps;
    const { tenant, token, nonce } = this.lease.fence;
    const about = { run: this.runId, effect: this.effect.name };
    try {
      const of = { ...this.ref, token, nonce };
      await leaveSaid(evidence, (said) => store.intake.leaveEvidence(tenant, of, said));
      log("info", "effect.evidence_recorded", about);
    } catch (error) {
      log("warn", "effect.evidence_refused", { ...about, ...errorFields(error) });
    }
  }

  async #onNote(): Promise<void> {
    const { store, tenant } = this.#deps;
    const target = { journal: this.lease.term.journal };
    const from = (this.#notes.at(-1)?.seq ?? 0) + 1;
    this.#notes = [...this.#notes, ...(await store.read.journal(tenant, target, { from, inbox: true }))];
  }
}

export interface ItemJournal {
  readonly records: readonly JournalRecord[];
  readonly notes: readonly JournalRecord[];
  /** Evidence in the inbox of the run that decided over it before. */
  readonly runEvidence: readonly JournalRecord[];
}

/** Who is to go on with an effect in this status. An attempt that nobody finished is the reconciler's. */
function nextReactorOf(status: EffectRow["status"], actor: string): { nextReactor?: string } {
  if (status === "PENDING") return { nextReactor: actor };
  if (status === "DISPATCHED" || status === "COMMITTED" || status === "UNKNOWN") return { nextReactor: "reconciler" };
  return {};
}
