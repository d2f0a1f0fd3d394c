import { encode } from "../../base/codec.ts";
import { TapeError } from "../../model/errors.ts";
import { laneOf } from "../../model/record-context.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { History } from "./history.ts";

/** Errors for code and journal that disagree: what is recorded, what is requested, how to continue. */

export interface RequestedOperation {
  readonly kinds: readonly string[];
  readonly name: string;
  readonly hash?: string | undefined;
  readonly args?: unknown;
}

/** Compares the request at a position with the journal's record there. */
export function compare(byPos: History["byPos"], pos: number, request: RequestedOperation): TapeError | undefined {
  const first = byPos.get(pos)?.[0];
  if (first === undefined || isSame(first, request)) return undefined;
  const data = first.data as { args?: unknown; input?: unknown };
  const otherArgs = request.kinds.includes(first.kind) && [undefined, request.name].includes(nameOf(first));
  const recorded = otherArgs ? `${describe(first)} with ${excerpt(data.args ?? data.input)}` : describe(first);
  const requested = otherArgs
    ? `the same with ${excerpt(request.args)}`
    : `${kindName(request.kinds[0]!)} "${request.name}"`;
  const message = `at position ${pos} the journal has ${recorded}, but the code requests ${requested}`;
  // The same operation exists at a later position: only the order has changed.
  for (const [at, [later]] of byPos) {
    if (at <= pos || laneOf(at) !== laneOf(pos) || later === undefined || !isSame(later, request)) continue;
    return diverged(
      `${message}, which it has at position ${at}: branches have requested operations in another order`,
      first,
      laneAdvice,
    );
  }
  return diverged(message, first);
}

function isSame(first: JournalRecord, request: RequestedOperation): boolean {
  const data = first.data as { argsHash?: string; inputHash?: string; binds?: string };
  const name = nameOf(first);
  const hash = data.argsHash ?? data.inputHash ?? data.binds;
  const sameName = name === undefined || name === request.name;
  const sameArgs = request.hash === undefined || hash === undefined || hash === request.hash;
  return request.kinds.includes(first.kind) && sameName && sameArgs;
}

export function neverRequested(record: JournalRecord): TapeError {
  return diverged(`the journal continues with ${describe(record)}, but the code has not requested it`, record);
}

/** `times` replays have waited this long for the code to request the record's operation. */
export function awaitedInVain(record: JournalRecord, ms: number, times: number): TapeError {
  const message = `${times} replays waited ${ms / 1_000} s each for the code to request ${describe(record)}. To continue: if the workflow awaits something other than an operation there (I/O, a timer, a lock), move that into a step, or raise replayPatience; if its code was changed, ${patchAdvice}`;
  return new TapeError("TAPE_DIVERGED", message, { seq: record.seq, kind: record.kind, waitedMs: ms, times });
}

export function endedEarly(left: JournalRecord): TapeError {
  return diverged(`the code ended, but the journal continues with ${describe(left)}`, left);
}

/** An operation that a body requests. */
export function nested(request: NamedOperation, body: NamedOperation): TapeError {
  const [inner, outer] = [operationName(request), operationName(body)];
  const message = `${inner} was requested inside ${outer}, where a replay would not find it. Request it in the workflow itself, before or after ${outer}, and use what that returns. To group several operations, start a child run (tape.spawn)`;
  return new TapeError("TAPE_NESTED", message, { inner, outer });
}

interface NamedOperation {
  readonly kind: string;
  readonly name: string;
}

/** For example `step "greet"`; a kind that is not an operation is left out. */
export function operationName({ kind, name }: NamedOperation): string {
  const known = kindNames[kind];
  return known === undefined ? name : `${known} "${name}"`;
}

const patchAdvice =
  'guard the change with `if (tape.patched("…"))` so that this run continues as it started, or restore the old code; then redrive the run';

const laneAdvice = `if they run concurrently and await something other than operations (I/O, a timer), start each of them in a lane, tape.lane(name, branch), which keeps its own order, and fork the run; otherwise ${patchAdvice}`;

function diverged(message: string, record: JournalRecord, advice = patchAdvice): TapeError {
  return new TapeError("TAPE_DIVERGED", `${message}. To continue: ${advice}`, { seq: record.seq, kind: record.kind });
}

export function describe(record: JournalRecord): string {
  const name = nameOf(record);
  return `${kindName(record.kind)}${name === undefined ? "" : ` "${name}"`} (${record.kind}, record ${record.seq})`;
}

function nameOf(record: JournalRecord): string | undefined {
  const data = record.data as { name?: string; key?: string; workflow?: string };
  return data.name ?? data.workflow ?? data.key;
}

const kindNames: Readonly<Record<string, string>> = {
  "effect.intended": "effect",
  "effect.received": "effect",
  "effect.dispatched": "effect",
  "effect.settled": "effect",
  "step.done": "step",
  "step.failed": "step",
  "decision.made": "decision",
  "sample.taken": "sample",
  "gate.opened": "gate",
  "gate.resolved": "gate",
  "timer.set": "sleep",
  "sleep.ended": "sleep",
  "child.started": "child",
  "child.received": "result of child",
  "patch.marked": "patch",
  "state.published": "published value",
  "labels.set": "labels",
  "reply.sent": "reply",
  "race.won": "race",
  "scope.opened": "scope",
  "scope.closed": "end of scope",
  "saga.compensated": "compensation of saga",
  "value.written": "value",
  "budget.reserved": "budget reservation",
  "budget.presumed": "presumed cost",
  "budget.charged": "budget charge",
};

function kindName(kind: string): string {
  return kindNames[kind] ?? kind;
}

const maxExcerptChars = 200;

function excerpt(value: unknown): string {
  try {
    const text = encode(value);
    return text.length <= maxExcerptChars ? text : `${text.slice(0, maxExcerptChars)}…`;
  } catch {
    return "arguments that cannot be stored";
  }
}
