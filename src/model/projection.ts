import { encode } from "../base/codec.ts";
import type { Change } from "./changes.ts";
import { TapeError } from "./errors.ts";
import { itemKinds, nameKinds, noteKinds, storeKinds } from "./kinds.ts";
import { type RunPhase, runMachine } from "./machines.ts";
import { childStarted } from "./projection-creation.ts";
import { armed, dispatched, intended, obligationSettled, settled, surplus } from "./projection-effects.ts";
import { childrenDue, effectWithdrawn, scopeClosed, scopeOpened } from "./projection-scopes.ts";
import { encodeBody, encodePayload, type RecordContext } from "./record-context.ts";
import type { NewRecord, RecordData, RecordKind } from "./records.ts";
import type { JournalKind } from "./rows.ts";
import { debouncePos, type SlotEvent, uniquePos } from "./slot.ts";

export { changesOfCreation } from "./projection-creation.ts";
export { isScopeTimer, scopeTimer } from "./projection-scopes.ts";
export { encodeBody, type RecordContext } from "./record-context.ts";

/**
 * projection = fold(records): the only definition of how each kind of record changes the tables. Every store applies
 * these changes in the transaction that writes the record; the checker applies them again and compares. `seq`: the
 * record's number.
 */
export function changesOf(record: NewRecord, place: RecordContext, seq = 0): Change[] {
  assertKindAllowed(record.kind, place.kind);
  const own = place.journal;
  switch (record.kind) {
    case "run.decided":
      return [
        ...moved(place, { of: "decided" }),
        phase(own, "ENDING", { cause: record.data.cause, outcome: encodePayload(record.data.outcome) }),
        { do: "effects.withdraw", run: own },
        { do: "business_keys.sweep", run: own },
        { do: "items.sweep", run: own },
        { do: "gates.withdraw", run: own },
        { do: "timers.cancel", run: own },
      ];
    case "run.continued": {
      const { pos, notesTaken } = record.data;
      return [
        { do: "run.assert_continues", journal: own },
        { do: "gates.withdraw", run: own },
        { do: "timers.withdraw", run: own },
        { do: "lease.begin", journal: own, seq, pos, notesTaken },
      ];
    }
    case "run.compensating":
      return [
        // Only once no effect is in doubt: a later confirmation would arm an obligation that never falls due.
        { do: "run.assert_settled", journal: own, armed: false },
        phase(own, "COMPENSATING", { decided: "failed,cancelled" }),
        { do: "obligations.make_due", run: own, pos: null, sub: null },
        { do: "obligations.release_next", run: own },
      ];
    case "run.ended":
      return ended(record.data, place);
    case "run.stuck":
      return [phase(own, "STUCK")]; // the record has the reason; the row keeps an outcome that was already decided
    case "run.unstuck":
      return [{ ...phase(own, record.data.to), from: "STUCK" }];
    case "run.retried":
      return [];
    case "run.limited":
      return [{ do: "lease.limit", journal: own, maxStallMs: record.data.maxStallMs }];
    case "run.pinned":
      return [{ do: "lease.pin", journal: own, build: record.data.build }];
    case "step.failed": {
      const { pos, attempt, delayMs, timer } = record.data;
      if (timer === undefined) return [];
      return [{ do: "timer.create", run: own, pos, purpose: retryTimer(attempt), delayMs, until: null }];
    }
    case "term.ended": {
      const { notesTaken, nextReactor, delayMs, reason } = record.data;
      return [
        ...moved(place, { of: "released", wanted: nextReactor !== undefined }),
        {
          do: "lease.release",
          journal: own,
          notesTaken,
          nextReactor: nextReactor ?? null,
          delayMs: delayMs ?? 0,
          endReason: reason,
          open: true,
        },
      ];
    }
    case "child.started":
      return childStarted(record.data, place);
    case "children.due":
      return childrenDue(own, record.data);
    case "scope.opened":
      return scopeOpened(own, record.data);
    case "scope.closed":
      return scopeClosed(own, record.data);
    case "effect.withdrawn":
      return effectWithdrawn(own, record.data);
    case "effect.intended":
      return intended(record.data, place);
    case "effect.dispatched":
      return dispatched(record.data, place);
    case "effect.settled":
      return settled(record.data, place);
    case "obligation.armed":
      return armed(record.data, place);
    case "obligation.surplus":
      return surplus(record.data, place);
    case "obligation.due": {
      const { pos, sub } = record.data;
      return [
        { do: "obligations.make_due", run: own, pos, sub },
        { do: "obligations.release_next", run: own },
      ];
    }
    case "obligation.settled":
      return obligationSettled(record.data, place);
    case "gate.opened": {
      const { pos, name, binds, timeoutMs, approvers, callback = null } = record.data;
      const gate: Change = {
        do: "gate.create",
        run: own,
        pos,
        name,
        binds: binds ?? null,
        payload: encodePayload(record.data.payload),
        approvers: approvers === undefined ? null : JSON.stringify(approvers),
        callback,
      };
      if (timeoutMs === undefined) return [gate];
      return [gate, { do: "timer.create", run: own, pos, purpose: "gate_timeout", delayMs: timeoutMs, until: null }];
    }
    case "gate.resolved": {
      const { pos, to, value, note } = record.data;
      return [
        {
          do: "gate.status",
          run: own,
          pos,
          to,
          note: note === undefined ? null : String(note),
          value: encodePayload(value),
        },
        { do: "timer.status", run: own, pos, purpose: "gate_timeout", to: "CANCELLED", required: false },
      ];
    }
    case "state.published": {
      const { name, value } = record.data;
      return [{ do: "published.put", run: own, name, value: encode(value), seq, max: place.maxNames }];
    }
    case "labels.set": {
      const { set, unset } = record.data;
      const texts = { set: JSON.stringify(set), unset: JSON.stringify(unset) };
      return [{ do: "labels.set", run: own, ...texts, max: place.maxLabels }];
    }
    case "reply.sent":
      return replied(own, record.data);
    case "signal.refused": {
      const { note, reason, asks } = record.data;
      const waits: Change = { do: "gate.wait_again", run: own, note };
      return asks === true
        ? [waits, { do: "reply.create", run: own, note, body: encode({ refused: reason }) }]
        : [waits];
    }
    case "timer.set": {
      const { pos, purpose, delayMs, until = null } = record.data;
      return [{ do: "timer.create", run: own, pos, purpose, delayMs, until }];
    }
    case "sleep.ended":
      return record.data.fired ? [{ do: "timer.fire", run: own, pos: record.data.pos, purpose: "sleep" }] : [];
    case "timer.cancelled": {
      const { pos, purpose } = record.data;
      return [{ do: "timer.status", run: own, pos, purpose, to: "CANCELLED", required: true }];
    }
    case "budget.reserved":
      return Object.entries(record.data.amounts).map(([unit, amount]) => ({
        do: "budget.reserve",
        by: own,
        run: record.data.rootRun,
        unit,
        amount,
        max: place.maxUnits,
      }));
    case "budget.presumed":
      return charged(own, { ...record.data, spent: record.data.amounts, reserved: {} }, place);
    case "budget.charged":
      return charged(own, record.data, place);
    case "value.written": {
      const { key, version, value, deleted } = record.data;
      const text = deleted === true ? null : encode(value);
      return valueWritten({ tenant: null, source: own, key, version, value: text }, place.keepVersions);
    }
    default:
      return []; // steps, decisions, samples and the like exist only in the journal
  }
}

/** A request that a fork has kept has no sender here. */
function replied(run: number, { note, value, error }: RecordData<"reply.sent">): Change[] {
  if (note === undefined) return [];
  return [{ do: "reply.create", run, note, body: encode(error === undefined ? { value } : { error }) }];
}
/** The timer whose firing requests the cancellation of the run. It is set once, at position 0. */
export const deadlineTimer = { pos: 0, purpose: "deadline" } as const;

/** The purpose of the timer that resumes a STUCK run. Its position is the head of the journal when it was set. */
export const redriveTimer = "redrive";

/** The timer that ends the pause after this attempt. Each attempt has its own, because a fired timer stays a row. */
export const retryTimer = (attempt: number): string => `retry ${attempt}`;

/** A unit may have the name of an inherited property, such as `constructor`. */
const amountOf = (amounts: Readonly<Record<string, number>>, unit: string): number =>
  Object.hasOwn(amounts, unit) ? amounts[unit]! : 0;

function charged(
  by: number,
  { rootRun: run, spent, reserved }: Pick<RecordData<"budget.charged">, "rootRun" | "spent" | "reserved">,
  { maxUnits: max }: RecordContext,
): Change[] {
  const units = [...new Set([...Object.keys(spent), ...Object.keys(reserved)])];
  return units.map((unit) => {
    const amounts = { spent: amountOf(spent, unit), reserved: amountOf(reserved, unit) };
    return { do: "budget.charge", by, run, unit, ...amounts, max };
  });
}

const moved = ({ journal, queued }: RecordContext, event: SlotEvent): Change[] =>
  queued ? [{ do: "slot.set", journal, event }] : [];

/**
 * A value's new version: writes the current row and a history entry, and trims the history. A deletion trims all of it,
 * because a deleted value must not be readable from its past.
 */
export function valueWritten(
  value: Omit<Extract<Change, { do: "value.put" }>, "do">,
  keepVersions: number,
): [Extract<Change, { do: "value.put" }>, Change] {
  const keptVersions = value.value === null ? 1 : keepVersions;
  return [
    { do: "value.put", ...value },
    { do: "value.log", ...value, through: value.version - keptVersions },
  ];
}

function ended(data: RecordData<"run.ended">, place: RecordContext): Change[] {
  const own = place.journal;
  const { status, outcome, notesTaken, parent } = data;
  const decidedNow = outcome !== undefined;
  const changes: Change[] = [
    { do: "run.assert_settled", journal: own, armed: status !== "COMPLETED" },
    {
      ...phase(own, status, {
        decided: causeOf(status),
        cause: decidedNow ? causeOf(status) : null,
        outcome: encodePayload(outcome),
      }),
      parent: parent?.journal ?? null,
    },
  ];
  if (status === "COMPLETED") changes.push({ do: "obligations.discharge", run: own });
  if (parent !== undefined) {
    const note: RecordData<"child.settled"> = { pos: parent.pos, id: parent.id, status, outcome };
    changes.push({
      do: "note.create",
      journal: parent.journal,
      kind: "child.settled",
      body: encodeBody(note),
      required: false,
      orAncestor: false,
    });
  }
  if (place.queued) {
    changes.push({ do: "slot.set", journal: own, event: { of: "ended" } });
    changes.push({ do: "business_key.drop", run: own, pos: uniquePos });
    changes.push({ do: "business_key.drop", run: own, pos: debouncePos });
  }
  changes.push({
    do: "lease.release",
    journal: own,
    notesTaken,
    nextReactor: null,
    delayMs: 0,
    endReason: "released",
    open: false,
  });
  return changes;
}

type PhaseChange = Extract<Change, { do: "run.phase" }>;

function phase(
  journal: number,
  to: RunPhase,
  more: Partial<Pick<PhaseChange, "decided" | "cause" | "outcome">> = {},
): PhaseChange {
  const from = runMachine.sourcesOf(to).filter((state) => state !== "STUCK" || to === "STUCK");
  const { decided = null, cause = null, outcome = null } = more;
  return { do: "run.phase", journal, to, from: from.join(","), decided, cause, outcome, parent: null };
}

function causeOf(status: "COMPLETED" | "FAILED" | "CANCELLED" | "COMPENSATED"): string | null {
  return status === "COMPENSATED" ? null : status.toLowerCase();
}

function assertKindAllowed(kind: RecordKind, journal: JournalKind): void {
  const allowed =
    journal === "item"
      ? itemKinds.has(kind)
      : journal === "name"
        ? nameKinds.has(kind)
        : journal === "run" && !noteKinds.has(kind) && !storeKinds.has(kind);
  if (!allowed) {
    throw new TapeError("TAPE_RECORD_MISPLACED", `a ${kind} record does not belong in the journal of a ${journal}`, {
      kind,
      journal,
    });
  }
}
