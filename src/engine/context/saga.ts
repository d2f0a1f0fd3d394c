import type { NewRecord } from "../../model/records.ts";
import { type EffectRow, effectRefOf } from "../../model/rows.ts";
import type { OperationHandle } from "../core/operation.ts";
import { unresolved, unresolvedEffectError } from "../core/stuck-records.ts";
import type { Note } from "../replay/history.ts";
import type { Operations } from "./operations.ts";
import { isExposed, type Scope } from "./scope.ts";

/** Records in one append, well within the store's limit. */
const maxDueAtOnce = 500;
const openEffects = ["PENDING", "DISPATCHED", "UNKNOWN", "STUCK"];
const owed = ["ARMED", "PENDING", "COMMITTED", "UNKNOWN", "STUCK"];

/**
 * Compensates what a failed saga has done, and resolves when nothing of it is owed any more. A cancelled run compensates
 * everything as it ends, so that it leaves its sagas alone.
 */
export async function compensateSaga(ops: Operations, scope: Scope, failure: unknown): Promise<void> {
  const { drive } = ops;
  if (scope.effects.length === 0 && scope.started.size === 0) return;
  if (drive.cancelled && isExposed(scope)) return;
  try {
    await ops.operation<void>(
      {
        kinds: ["saga.compensated"],
        name: scope.spec.name,
        evenIfClosed: true,
        result: () => undefined,
        begin: (handle) => new SagaCompensation(ops, scope, handle).check(),
      },
      { scope: scope.parent },
    );
  } catch (error) {
    if (drive.cancelled) throw failure; // the run compensates the rest
    throw error;
  }
}

/**
 * Three stages, each found out from the store, so that a drive after a crash continues wherever this one stopped: every
 * effect inside has its outcome and every child its end; what they owe falls due; it is compensated.
 */
class SagaCompensation {
  readonly #ops: Operations;
  readonly #scope: Scope;
  readonly #handle: OperationHandle<void>;
  readonly #effects: ReadonlySet<number>;

  constructor(ops: Operations, scope: Scope, handle: OperationHandle<void>) {
    this.#ops = ops;
    this.#scope = scope;
    this.#handle = handle;
    this.#effects = new Set(scope.effects);
  }

  /** Counts as a running body: the drive must not park between a read and the wait that follows it. */
  check(): void {
    const { drive } = this.#ops;
    drive.activeBodies++;
    void this.#advance()
      .catch((error: unknown) => drive.fail(error))
      .finally(() => {
        drive.activeBodies--;
        drive.parkIfIdle();
      });
  }

  async #advance(): Promise<void> {
    const { drive } = this.#ops;
    for (;;) {
      const { notesTaken } = drive.waits;
      const waiting = await this.#stage();
      if (drive.finished || this.#handle.stopped || waiting === undefined) return;
      // A note that was taken during the read may be about something that the read has missed.
      if (drive.waits.notesTaken !== notesTaken) continue;
      this.#await(waiting);
      return;
    }
  }

  /** What the saga waits for; undefined: it is compensated, or the drive is over. */
  async #stage(): Promise<{ readonly about: string; readonly stuck?: readonly EffectRow[] } | undefined> {
    const { drive } = this.#ops;
    let open = await this.#openEffects();
    if (open.some(({ authority, run }) => authority === run)) {
      await drive.whenEffectsSettle(); // attempts in progress leave no note
      open = await this.#openEffects();
    }
    if (drive.finished) return undefined;
    const stuck = open.filter(({ status }) => status === "STUCK");
    if (stuck.length > 0) return { about: "an operator", stuck };
    if (open.length > 0) return { about: `effect ${open[0]!.name}` };
    const children = await this.#liveChildren();
    if (children.length > 0) return { about: `child ${children[0]}` };
    const { own, below } = await this.#obligations();
    if (drive.finished) return undefined;
    if (await this.#makeDue(own, below)) return { about: "compensation" };
    const left = [...own, ...[...below.values()].flat()];
    const stuckLeft = left.filter(({ status }) => status === "STUCK");
    if (stuckLeft.length > 0) return { about: "an operator", stuck: stuckLeft };
    if (left.length > 0) return { about: "compensation" };
    const { pos } = this.#handle;
    const data = { pos, of: this.#scope.pos, obligations: this.#effects.size };
    this.#handle.end({ kind: "saga.compensated", data }, undefined);
    return undefined;
  }

  async #openEffects(): Promise<EffectRow[]> {
    if (this.#effects.size === 0) return [];
    const { store, tenant, runId } = this.#ops.drive.options;
    const open = await store.read.effects(tenant, { run: runId, role: "effect", status: openEffects });
    return open.filter(({ pos }) => this.#effects.has(pos));
  }

  async #liveChildren(): Promise<string[]> {
    const { store, tenant } = this.#ops.drive.options;
    const runs = await Promise.all([...this.#scope.started.values()].map((id) => store.read.run(tenant, id)));
    return runs.flatMap((run) => (run !== undefined && run.endedAt === null ? [run.id] : []));
  }

  /** Newest first; those of children by the position of the child. */
  async #obligations(): Promise<{ own: EffectRow[]; below: ReadonlyMap<number, EffectRow[]> }> {
    const { drive } = this.#ops;
    const { store, tenant, lease } = drive.options;
    const { journal } = lease.term;
    const status = owed;
    const all = await store.read.effects(tenant, { root: drive.root, below: journal, status });
    const own = all.filter((row) => row.run === journal && this.#effects.has(row.pos) && !row.surplus);
    own.sort((a, b) => b.pos - a.pos || b.sub - a.sub);
    const below = new Map<number, EffectRow[]>();
    if (all.every(({ run }) => run === journal)) return { own, below };
    for (const [pos, id] of [...this.#scope.started].sort(([a], [b]) => b - a)) {
      const child = await store.read.run(tenant, id);
      if (child === undefined) continue;
      const rows = await store.read.effects(tenant, { root: drive.root, below: child.journal, status });
      if (rows.length > 0) below.set(pos, rows);
    }
    return { own, below };
  }

  /** true: something has fallen due now. */
  async #makeDue(own: readonly EffectRow[], below: ReadonlyMap<number, readonly EffectRow[]>): Promise<boolean> {
    const reason = `the saga at position ${this.#scope.pos} has failed`;
    const isArmed = ({ status }: EffectRow): boolean => status === "ARMED";
    const due: { readonly pos: number; readonly record: NewRecord }[] = [
      ...own.filter(isArmed).map(({ pos, sub }) => ({
        pos,
        record: { kind: "obligation.due", data: { pos, sub, reason } } as const,
      })),
      ...[...below]
        .filter(([, rows]) => rows.some(isArmed))
        .map(([pos]) => ({ pos, record: { kind: "children.due", data: { pos, reason } } as const })),
    ];
    due.sort((a, b) => b.pos - a.pos);
    for (let k = 0; k < due.length; k += maxDueAtOnce) {
      await this.#ops.drive.journal.append(due.slice(k, k + maxDueAtOnce).map(({ record }) => record));
    }
    return due.length > 0;
  }

  #await({ about, stuck }: { readonly about: string; readonly stuck?: readonly EffectRow[] }): void {
    const { drive } = this.#ops;
    const isCompensation = stuck?.[0]?.role === "compensation";
    drive.waits.add({
      pos: this.#handle.pos,
      description: about,
      match: () => undefined,
      written: () => {},
      watches: (note: Note) => note.kind === "effect.outcome" || note.kind === "child.settled",
      woken: () => this.check(),
      ...(stuck !== undefined && {
        gaveUp: unresolvedEffectError(unresolved(stuck[0]!), isCompensation),
        stuckOn: stuck.map(effectRefOf),
      }),
    });
  }
}
