import { TapeError } from "../../model/errors.ts";
import type { ScopeEnd } from "../../model/scope-records.ts";
import type { DriveHandle } from "../core/handle.ts";

/** What a scope is opened with. */
export interface ScopeSpec {
  /** In records and messages: scope, timeout or saga. */
  readonly name: string;
  readonly timeoutMs: number | undefined;
  /** Neither the end of an enclosing scope nor the cancellation of the run reaches what is inside. */
  readonly shielded: boolean;
  /** Its effects and children are remembered, because a failure compensates them. */
  readonly saga: boolean;
}

/**
 * Operations that end together. Which operations are inside follows from the async context of the code. The end of a
 * scope is a record, delivered at its place in the journal: a replay refuses the same operations at the same point.
 *
 *   open ──▶ closing ──▶ closed        closing: its record is on its way, and nothing starts inside any more
 */
export class Scope {
  readonly of: DriveHandle;
  readonly spec: ScopeSpec;
  readonly pos: number;
  readonly parent: Scope | undefined;
  readonly depth: number;
  closing = false;
  /** Why what is inside is refused; set at the delivery of its end. */
  refusal: (() => TapeError) | undefined;
  /** Children inside whose end the code has not received: position and id. */
  readonly children = new Map<number, string>();
  /** Open callbacks: gates that need no waiting operation. */
  readonly callbacks = new Set<number>();
  /** What a failing saga compensates: positions of effects, and of children with their ids. */
  readonly effects: number[] = [];
  readonly started = new Map<number, string>();
  /** The timer that ends it. */
  timer: string | undefined;
  #abort: AbortController | undefined;
  /** Resolves at the delivery of its end. */
  readonly closed: Promise<void>;
  /** Its end is delivered. */
  readonly close: () => void;

  constructor(of: DriveHandle, pos: number, spec: ScopeSpec, parent: Scope | undefined) {
    this.of = of;
    this.pos = pos;
    this.spec = spec;
    this.parent = parent;
    this.depth = (parent?.depth ?? 0) + 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.close = resolve;
  }

  get inSaga(): boolean {
    return this.spec.saga || this.parent?.inSaga === true;
  }

  /** Aborts when what is inside is refused, or the drive is over. */
  get abortSignal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      const refusal = refusalAt(this.of, this);
      if (refusal !== undefined || this.of.finished) this.#abort.abort(refusal ?? this.of.abortSignal.reason);
    }
    return this.#abort.signal;
  }

  abort(reason: unknown): void {
    if (this.#abort?.signal.aborted === false) this.#abort.abort(reason);
  }

  addChild(pos: number, id: string): void {
    this.children.set(pos, id);
    for (let scope: Scope | undefined = this; scope !== undefined; scope = scope.parent)
      if (scope.spec.saga) scope.started.set(pos, id);
  }

  childEnded(pos: number): void {
    for (let scope: Scope | undefined = this; scope !== undefined; scope = scope.parent) scope.children.delete(pos);
  }

  addEffect(pos: number): void {
    for (let scope: Scope | undefined = this; scope !== undefined; scope = scope.parent)
      if (scope.spec.saga) scope.effects.push(pos);
  }

  /** It has ended: children that still run belong to the enclosing scope. */
  handUp(): void {
    for (const [pos, id] of this.children) this.parent?.children.set(pos, id);
    this.children.clear();
  }
}

/** Why an operation in this scope is refused now; undefined: it is not. */
export function refusalAt(drive: DriveHandle, from: Scope | undefined): TapeError | undefined {
  for (let scope = from; scope !== undefined; scope = scope.parent) {
    if (scope.refusal !== undefined) return scope.refusal();
    if (scope.spec.shielded) return undefined;
  }
  return drive.cancelled ? cancelledError() : undefined;
}

/** The same as soon as the end of a scope is requested: nothing starts that would be refused in a moment. */
export function stopsAt(drive: DriveHandle, from: Scope | undefined): boolean {
  for (let scope = from; scope !== undefined; scope = scope.parent) {
    if (scope.closing || scope.refusal !== undefined) return true;
    if (scope.spec.shielded) return false;
  }
  return drive.cancelRequested;
}

/** Whether the cancellation of the run reaches code in this scope, whatever has become of the scopes themselves. */
export function isExposed(from: Scope | undefined): boolean {
  for (let scope = from; scope !== undefined; scope = scope.parent) if (scope.spec.shielded) return false;
  return true;
}

/** The end of `ended` reaches this scope: it is inside, and no shield is between them. */
export function reaches(ended: Scope, from: Scope): boolean {
  for (let scope: Scope | undefined = from; scope !== undefined; scope = scope.parent) {
    if (scope === ended) return true;
    if (scope.spec.shielded) return false;
  }
  return false;
}

export const cancelledError = (): TapeError => new TapeError("TAPE_CANCELLED", "the run was cancelled");

/** The error of an operation that the end of a scope refuses. */
export function scopeError(scope: Scope, reason: ScopeEnd, detail: string | undefined): TapeError {
  const { name, timeoutMs } = scope.spec;
  const about = { scope: scope.pos };
  if (reason === "timeout") {
    const message = `the ${name} at position ${scope.pos} took longer than ${timeoutMs} ms`;
    return new TapeError("TAPE_TIMEOUT", message, { ...about, timeoutMs });
  }
  const why = { done: "has returned", failed: "has failed", cancelled: `was cancelled: ${detail}` }[reason];
  return new TapeError("TAPE_CANCELLED", `the ${name} at position ${scope.pos} ${why}`, { ...about, reason });
}
