import { noteKinds } from "../model/kinds.ts";
import type { JournalRecord } from "../model/records.ts";

/**
 * The reactor that a record gives work to; undefined: none. It is a hint for push handlers: a handler that is woken for
 * nothing finds nothing due. What becomes due later, such as a timer, has no record at that time: alarms are for that.
 */
export function wantsOf({ kind, data }: Pick<JournalRecord, "kind" | "data">): string | undefined {
  if (kind === "effect.evidence") return "reconciler";
  if (noteKinds.has(kind)) return "recovery";
  const { to, dispatch, nextReactor } = data as { to?: unknown; dispatch?: unknown; nextReactor?: unknown };
  switch (kind) {
    case "run.created":
      return "recovery";
    case "term.ended":
      return typeof nextReactor === "string" ? nextReactor : undefined;
    case "effect.intended":
      return dispatch === "outbox" ? "outbox" : undefined;
    case "effect.settled":
    case "obligation.settled":
      return to === "UNKNOWN" ? "reconciler" : undefined;
    case "run.compensating":
    case "obligation.due":
      return "compensation";
    default:
      return undefined;
  }
}
