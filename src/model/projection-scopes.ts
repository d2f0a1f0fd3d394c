import type { Change } from "./changes.ts";
import type { RecordData } from "./records.ts";

/** How records of scopes change the tables; a part of projection.ts. */

/** The purpose of a scope's timer. Each opening has its own, because a cancelled timer stays a row. */
export const scopeTimer = (again = 0): string => (again === 0 ? "scope" : `scope ${again}`);

export const isScopeTimer = (purpose: string): boolean => purpose === "scope" || purpose.startsWith("scope ");

export function scopeOpened(run: number, { pos, timeoutMs, again }: RecordData<"scope.opened">): Change[] {
  if (timeoutMs === undefined) return [];
  return [{ do: "timer.create", run, pos, purpose: scopeTimer(again), delayMs: timeoutMs, until: null }];
}

export function scopeClosed(run: number, { gates = [], timers = [] }: RecordData<"scope.closed">): Change[] {
  const cancelled = (pos: number, purpose: string): Change => ({
    do: "timer.status",
    run,
    pos,
    purpose,
    to: "CANCELLED",
    required: false,
  });
  return [
    ...gates.flatMap((pos): Change[] => [
      { do: "gate.status", run, pos, to: "WITHDRAWN", note: null, value: null },
      cancelled(pos, "gate_timeout"),
    ]),
    ...timers.map(({ pos, purpose }) => cancelled(pos, purpose)),
  ];
}

export function effectWithdrawn(run: number, { pos }: RecordData<"effect.withdrawn">): Change[] {
  return [
    { do: "effect.withdraw", run, pos },
    { do: "business_key.drop", run, pos },
    { do: "item.sweep", run, pos },
  ];
}

export function childrenDue(run: number, { pos }: RecordData<"children.due">): Change[] {
  return [
    { do: "obligations.make_due_below", run, pos },
    { do: "obligations.release_next", run },
  ];
}
