import { encode } from "../../base/codec.ts";
import { TapeError } from "../../model/errors.ts";
import { laneOf } from "../../model/record-context.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { History } from "./history.ts";

/** Where the code and the journal disagree, in words: what is recorded, what was asked for, how to go on. */

export interface RequestedOperation {
  readonly kinds: readonly string[];
  readonly name: string;
  readonly hash?: string | undefined;
  readonly args?: unknown;
}

/** Compares what the code asks for at a position with what the journal holds there. */
export function compare(byPos: History["byPos"], pos: number, asked: RequestedOperation): TapeError | undefined {
  const first = byPos.get(pos)?.[0];
  if (first === undefined || isSame(first, asked)) return undefined;
  const data = first.data as { args?: unknown; input?: unknown };
  const other = asked.kinds.includes(first.kind) && [undefined, asked.name].includes(nameOf(first));
  const has = other ? `${describe(first)} with ${excerpt(data.args ?? data.input)}` : describe(first);
  const what = other ? `the same with ${excerpt(asked.args)}` : `${kindName(asked.kinds[0]!)} "${asked.name}"`;
  const message = `at position ${pos} the journal has ${has}, but the code asks for ${what}`;
  // It is there, only later: nothing was changed but the order.
  for (const [at, [later]] of byPos) {
    if (at <= pos || laneOf(at) !== laneOf(pos) || later === undefined || !isSame(later, asked)) continue;
    return diverged(
      `${message}, which it has at position ${at}: branches have asked in another order`,
      first,
      laneAdvice,
    );
  }
  return diverged(message, first);
}

function isSame(first: JournalRecord, asked: RequestedOperation): boolean {
  const data = first.data as { argsHash?: string; inputHash?: string; binds?: string };
  const name = nameOf(first);
  const hash = data.argsHash ?? data.inputHash ?? data.binds;
  const sameName = name === undefined || name === asked.name;
  const sameArgs = asked.hash === undefined || hash === undefined || hash === asked.hash;
  return asked.kinds.includes(first.kind) && sameName && sameArgs;
}

export function neverRequested(record: JournalRecord): TapeError {
  return diverged(`the journal goes on with ${describe(record)}, but the code has not asked for it`, record);
}

/** `times` replays have waited so long for the code to ask for it. */
export function awaitedInVain(record: JournalRecord, ms: number, times: number): TapeError {
  const message = `${times} replays waited ${ms / 1_000} s each for the code to ask for ${describe(record)}. To go on: if the workflow waits for something of its own there (I/O, a timer, a lock), put that into a step, or raise the patience of replay (replayPatience); if its code was changed, ${patchAdvice}`;
  return new TapeError("TAPE_DIVERGED", message, { seq: record.seq, kind: record.kind, waitedMs: ms, times });
}

export function endedEarly(left: JournalRecord): TapeError {
  return diverged(`the code ended, but the journal goes on with ${describe(left)}`, left);
}

/** An operation that a body asks for. */
export function nested(asked: Place, body: Place): TapeError {
  const [inner, outer] = [placeName(asked), placeName(body)];
  const message = `${inner} was asked for inside ${outer}, where no replay would find it. Ask for it in the workflow itself, before or after ${outer}: a body returns what the workflow then acts on. Several of them that belong together are a child run (tape.spawn)`;
  return new TapeError("TAPE_NESTED", message, { inner, outer });
}

interface Place {
  readonly kind: string;
  readonly name: string;
}

/** step "greet"; what is no operation by itself goes by its name alone. */
export function placeName({ kind, name }: Place): string {
  const word = kindNames[kind];
  return word === undefined ? name : `${word} "${name}"`;
}

const patchAdvice =
  'guard the change with `if (tape.patched("…"))` so that this run goes on as it began, or bring the old code back; then redrive the run';

const laneAdvice = `if they run side by side and wait for something of their own (I/O, a timer), begin each of them in a lane, tape.lane(name, branch), which keeps its own order, and fork the run; else ${patchAdvice}`;

function diverged(message: string, record: JournalRecord, advice = patchAdvice): TapeError {
  return new TapeError("TAPE_DIVERGED", `${message}. To go on: ${advice}`, { seq: record.seq, kind: record.kind });
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
  "decision.made": "decision",
  "sample.taken": "sample",
  "gate.opened": "gate",
  "gate.resolved": "gate",
  "timer.set": "sleep",
  "sleep.ended": "sleep",
  "child.started": "child",
  "child.received": "result of child",
  "patch.marked": "patch",
  "race.won": "race",
  "value.written": "value",
  "budget.reserved": "budget reservation",
  "budget.charged": "budget charge",
};

function kindName(kind: string): string {
  return kindNames[kind] ?? kind;
}

const maxExcerpt = 200;

function excerpt(value: unknown): string {
  try {
    const text = encode(value);
    return text.length <= maxExcerpt ? text : `${text.slice(0, maxExcerpt)}…`;
  } catch {
    return "arguments that cannot be stored";
  }
}
