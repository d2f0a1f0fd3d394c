import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { decodeSchedule, firedRun, scheduleFault } from "../../model/schedule.ts";
import { checkRunSpec, checkStored } from "./entry.ts";

/**
 * Validates a schedule before it is written: its runs can be started, it fires within the bounds, and it catches up on
 * a bounded number of missed firings. Otherwise one row could start runs without end.
 */
export function checkSchedule(field: string, id: string, spec: unknown, limits: Limits): void {
  checkStored(field, spec, limits);
  const fault = scheduleFault(spec, limits);
  if (fault !== undefined) throw new TapeError("TAPE_BAD_SCHEDULE", fault, { field });
  checkRunSpec(firedRun(id, decodeSchedule(id, spec), 0), limits);
}
