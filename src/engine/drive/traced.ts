import type { DriveOptions } from "../core/handle.ts";
import { Spans } from "../journal/spans.ts";

/** undefined: no tracer is set. */
export function spansOf(options: DriveOptions, workflow: string): Spans | undefined {
  const { tracing, tenant, runId, lease, startedAt } = options;
  if (tracing === undefined) return undefined;
  const attributes = {
    "tape.workflow": workflow,
    "tape.token": String(lease.token),
    "tape.reason": lease.term.reason,
  };
  return new Spans({ tracing, tenant, run: runId, attributes, ...(startedAt && { startedAt }) });
}
