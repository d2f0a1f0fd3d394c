import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { decodeSchedule, firedRun, scheduleFault } from "../../model/schedule.ts";
import { checkRunSpec, checkStored } from "./entry.ts";

/**
 * A schedule as it may be written: what its firings start can be started, it fires within the bounds, and it makes up for
 * a bounded number of them. Without this, one row could start runs for ever.
 */
export function checkSchedule(field: string, id: string, spec: unknown, limits: Limits): void {
  checkStored(field, spec, limits);
  const fault = scheduleFault(spec, limits);
  if (fault !== undefined) throw new TapeError("TAPE_BAD_SCHEDULE", fault, { field });
  checkRunSpec(firedRun(id, decodeSchedule(id, spec), 0), limits);
}
