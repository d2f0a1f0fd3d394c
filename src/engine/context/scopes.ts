import { errorFields } from "../../base/reason.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import { scopeTimer } from "../../model/projection.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { ScopeEnd } from "../../model/scope-records.ts";
import { currentSite, runAt } from "../../sdk/current.ts";
import type { ScopeHandle } from "../../sdk/scope.ts";
import type { LiveOperation } from "../core/operation.ts";
import type { Delivery } from "../replay/history.ts";
import type { Operations } from "./operations.ts";
import { compensateSaga } from "./saga.ts";
import { isExposed, reaches, refusalAt, Scope, type ScopeSpec, scopeError, stopsAt } from "./scope.ts";

/** Cleanup after a cancellation ends the run without it after this time, however many shielded scopes it opens. */
const maxCleanupMs = 600_000;

/** The scopes of one drive. */
export class Scopes {
  readonly #ops: Operations;
  readonly #open = new Set<Scope>();
  /** Gates that a record withdraws: one that is on its way must not be withdrawn twice. */
  readonly #withdrawn = new Set<number>();

  constructor(ops: Operations) {
    this.#ops = ops;
  }

  /** Runs the function in a scope of its own. */
  async run<T>(spec: ScopeSpec, work: (handle: ScopeHandle) => T | Promise<T>): Promise<T> {
    const ops = this.#ops;
    const { drive } = ops;
    ops.refuseNested("scope.opened", spec.name);
    if (drive.finished || drive.bodyEnded) return drive.tooLate(spec.name);
    const site = currentSite();
    const parent = ops.scopeAt(site);
    const refusal = spec.shielded ? undefined : refusalAt(drive, parent);
    if (refusal !== undefined) throw refusal;
    this.#assertRoom(parent);
    const pos = ops.nextPosition({ kinds: ["scope.opened"], name: spec.name });
    if (pos === undefined) return new Promise(() => {}); // the drive is over
    const scope = new Scope(drive, pos, spec, parent);
    this.#open.add(scope);
    this.#enter(scope);
    const handle: ScopeHandle = {
      cancel: (reason = "cancelled") => this.#cancel(scope, String(reason)),
      get abortSignal() {
        return scope.abortSignal;
      },
    };
    const context = site?.context ?? drive.context;
    try {
      const value = await runAt({ ...site, context, scope }, () => work(handle));
      await this.#end(scope, "done");
      return value;
    } catch (error) {
      await this.#end(scope, "failed");
      if (spec.saga) await compensateSaga(ops, scope, error);
      throw error;
    } finally {
      this.#open.delete(scope);
      scope.handUp();
    }
  }

  #assertRoom(parent: Scope | undefined): void {
    const { openScopes, scopeDepth } = this.#ops.drive.options.store.limits;
    const limit = this.#open.size >= openScopes ? "openScopes" : "scopeDepth";
    if (limit === "scopeDepth" && (parent?.depth ?? 0) < scopeDepth) return;
    const message =
      limit === "openScopes"
        ? `a run has at most ${openScopes} open scopes`
        : `scopes are at most ${scopeDepth} deep inside each other`;
    throw new TapeError("TAPE_TOO_LARGE", message, { limit });
  }

  /** Writes its opening unless the journal has it; its time-out is delivered like the result of an operation. */
  #enter(scope: Scope): void {
    const { drive } = this.#ops;
    const { pos, spec } = scope;
    const { name, timeoutMs, shielded } = spec;
    if (!drive.history.byPos.has(pos)) {
      const data = { pos, name, ...(timeoutMs !== undefined && { timeoutMs }), ...(shielded && { shielded }) };
      this.#ops.writeDetached({ kind: "scope.opened", data });
      scope.timer = timeoutMs === undefined ? undefined : scopeTimer();
    }
    if (timeoutMs === undefined) return;
    drive.replay.request({
      pos,
      deliver: (delivery) => this.#deliver(scope, delivery),
      begin: () => this.#watch(scope),
    });
  }

  /** Live: waits for the timer. A scope that is open again, after a retry or in a fork, has none yet. */
  #watch(scope: Scope): void {
    const { drive } = this.#ops;
    if (scope.refusal !== undefined || !this.#open.has(scope)) return;
    const { pos, spec } = scope;
    const opened = drive.history.byPos.get(pos)?.findLast(({ kind }) => kind === "scope.opened");
    if (opened?.kind === "scope.opened") {
      const { timeoutMs, again = 0 } = opened.data;
      const armed = timeoutMs !== undefined && (drive.history.scopeEnds.get(pos) ?? 0) < opened.seq;
      scope.timer = scopeTimer(armed ? again : again + 1);
      if (!armed) {
        const data = { pos, name: spec.name, timeoutMs: spec.timeoutMs!, again: again + 1 };
        this.#ops.writeDetached({ kind: "scope.opened", data });
      }
    }
    drive.waits.add({
      pos,
      description: `the time-out of ${spec.name} ${pos}`,
      background: true,
      ...(!isExposed(scope) && { shielded: true as const }),
      match: (note) => {
        if (note.kind !== "timer.fired" || note.data.pos !== pos || note.data.purpose !== scope.timer) return undefined;
        scope.timer = undefined;
        this.#request(scope, "timeout");
        return "resume"; // until the end has a record, a later drive finds the note again
      },
      written: () => {},
    });
    drive.matchWaits();
  }

  #cancel(scope: Scope, reason: string): void {
    if (stopsAt(scope.of, scope) || !this.#open.has(scope) || scope.of.bodyEnded) return;
    void this.#close(scope, "cancelled", reason.slice(0, maxReasonChars));
  }

  /** The function of the scope has returned or thrown. */
  async #end(scope: Scope, reason: "done" | "failed"): Promise<void> {
    if (scope.refusal !== undefined) return;
    if (scope.spec.shielded || refusalAt(scope.of, scope.parent) === undefined) {
      void this.#close(scope, reason);
      return scope.closed;
    }
    // What encloses it has ended, and has withdrawn what was inside.
    scope.refusal = () => scopeError(scope, reason, undefined);
  }

  /** The code ends the scope: an operation, which has a position. A time-out that is faster ends it instead. */
  #close(scope: Scope, reason: ScopeEnd, detail?: string): Promise<void> {
    return this.#ops.operation<void>(
      {
        kinds: ["scope.closed"],
        name: scope.spec.name,
        evenIfCancelled: true,
        result: (delivery) => this.#deliver(scope, delivery),
        begin: (handle) => {
          void scope.closed.then(() => handle.resolve(undefined));
          if (scope.refusal === undefined)
            this.#request(scope, reason, { pos: handle.pos, ...(detail !== undefined && { detail }) });
        },
      },
      { scope: scope.parent },
    );
  }

  /** Writes the end of the scope, once. What was not sent yet is withdrawn first, so that the end knows it. */
  #request(scope: Scope, reason: ScopeEnd, more: { readonly pos?: number; readonly detail?: string } = {}): void {
    if (scope.closing) return;
    scope.closing = true;
    const { drive } = this.#ops;
    const inside = this.#ops.pendingIn(scope);
    const withdrawals = inside.flatMap((live) => (live.withdraw === undefined ? [] : [live.withdraw]));
    const write = (): void => this.#write(scope, reason, more);
    if (withdrawals.length === 0) {
      write();
      return;
    }
    drive.activeBodies++;
    void Promise.all(withdrawals.map((withdraw) => withdraw()))
      .then(write, (error: unknown) => drive.fail(error))
      .finally(() => {
        drive.activeBodies--;
        drive.parkIfIdle();
      });
  }

  #write(scope: Scope, reason: ScopeEnd, { pos, detail }: { readonly pos?: number; readonly detail?: string }): void {
    const { drive, lanes } = this.#ops;
    if (drive.finished) return;
    const gates: number[] = [];
    const timers: { pos: number; purpose: string }[] = [];
    for (const live of this.#ops.pendingIn(scope)) {
      if (live.opening === undefined) continue;
      if (live.opening === "gate") gates.push(live.pos);
      else timers.push({ pos: live.pos, purpose: live.opening });
    }
    for (const other of this.#open) {
      if (!reaches(scope, other)) continue;
      gates.push(...other.callbacks);
      if (other.timer !== undefined) timers.push({ pos: other.pos, purpose: other.timer });
    }
    const fresh = gates.filter((gate) => !this.#withdrawn.has(gate));
    for (const gate of fresh) this.#withdrawn.add(gate);
    const data: RecordData<"scope.closed"> = {
      ...{ pos: pos ?? this.#ops.nextIn(lanes.at(scope.pos)), of: scope.pos, reason },
      ...(detail !== undefined && { detail }),
      ...(fresh.length > 0 && { gates: fresh.sort((a, b) => a - b) }),
      ...(timers.length > 0 && { timers }),
    };
    const record: NewRecord = { kind: "scope.closed", data };
    drive.journal.enqueue(
      [record],
      () => {
        this.#closed(scope, data, undefined);
        drive.parkIfIdle();
      },
      (error) => drive.fail(error),
    );
  }

  #deliver(scope: Scope, { record, seq }: Delivery): void {
    this.#closed(scope, record.data as RecordData<"scope.closed">, seq);
  }

  /** The end of the scope, at this point of the journal. `seq`: of its record, in a replay. */
  #closed(scope: Scope, data: RecordData<"scope.closed">, seq: number | undefined): void {
    const ops = this.#ops;
    const { reason, detail } = data;
    scope.closing = true;
    scope.timer = undefined;
    scope.refusal = () => scopeError(scope, reason, detail);
    const refused = ops.refuseIn(scope, seq);
    for (const other of [scope, ...this.#open]) if (reaches(scope, other)) other.abort(scope.refusal());
    const requested = this.#cancelChildren(scope, reason, refused);
    const waited = data.timers?.some((timer) => timer.pos !== scope.pos) === true || data.gates !== undefined;
    // A retry of the run could not repeat what is withdrawn, so it must not discard this end.
    if (reason !== "timeout" && (requested || waited || refused.some(isEffect))) ops.keep(data.pos);
    scope.close();
  }

  /** The run is cancelled: bodies see their signal, unless a shield protects them. */
  cancelled(reason: unknown): void {
    for (const scope of this.#open) if (isExposed(scope)) scope.abort(reason);
  }

  /** The drive is over. */
  halt(reason: unknown): void {
    for (const scope of this.#open) scope.abort(reason);
  }

  /** Code of a run that was cancelled then is in a shielded scope, and its time is not over. */
  cleansUp(cancelledAt: number): boolean {
    const { clock } = this.#ops.drive.options;
    if (clock.wall() - cancelledAt > maxCleanupMs) return false;
    return [...this.#open].some((scope) => scope.spec.shielded && scope.refusal === undefined);
  }

  /** A scope that returns asks only those children to stop whose results it still awaits. */
  #cancelChildren(scope: Scope, reason: ScopeEnd, refused: readonly LiveOperation<unknown>[]): boolean {
    const { drive } = this.#ops;
    const awaited = new Set(refused.map(({ name }) => name));
    const inside = [scope, ...[...this.#open].filter((other) => other !== scope && reaches(scope, other))];
    const children = inside.flatMap((other) => [...other.children.values()]);
    const ids = reason === "done" ? children.filter((id) => awaited.has(id)) : children;
    if (ids.length === 0) return false;
    // In a replay the previous holder may have crashed before it did so.
    drive.replay.whenLive(() => void this.#askToStop(scope, ids));
    return true;
  }

  async #askToStop(scope: Scope, ids: readonly string[]): Promise<void> {
    const { drive } = this.#ops;
    const { store, tenant, log, runId } = drive.options;
    drive.activeBodies++;
    const reason = `the ${scope.spec.name} that started it has ended`;
    try {
      for (const id of ids) {
        if (drive.finished) return;
        await store.intake.cancel(tenant, id, { reason }).catch((error: unknown) => {
          if (!isTapeError(error, "TAPE_RUN_ENDED") && !isTapeError(error, "TAPE_NOT_FOUND")) throw error;
        });
      }
    } catch (error) {
      log("warn", "scope.cancel_failed", { run: runId, ...errorFields(error) });
      drive.fail(error);
    } finally {
      drive.activeBodies--;
      drive.parkIfIdle();
    }
  }
}

const isEffect = ({ kind }: { readonly kind: string }): boolean => kind === "effect.intended";

/** Enough for a sentence. */
const maxReasonChars = 500;
