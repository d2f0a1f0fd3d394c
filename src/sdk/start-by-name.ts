import { defined } from "../base/defined.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { type QueueFields, queueFieldsOf } from "./start-options.ts";
import type { Runner } from "./workflow.ts";

/** A start by the name of its workflow: over HTTP, or from the command line. */
interface NamedStart {
  readonly workflow: string;
  readonly input?: unknown;
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  readonly priority?: number | undefined;
}

/** The queue that the workflow defines, if the start names none and this process has the workflow. */
export function queueOfStart(runner: Runner, start: NamedStart): QueueFields {
  const workflow = runner.workflows.get(start.workflow);
  if (workflow?.queue === undefined || start.queue !== undefined) return {};
  const subject = `start of ${start.workflow}`;
  const { key, priority } = start;
  try {
    return queueFieldsOf(subject, workflow, start.input as never, defined({ key, priority }));
  } catch (error) {
    if (isTapeError(error)) throw error;
    const message = `${subject}: the key of this input failed: ${error instanceof Error ? error.message : String(error)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "key" }, error);
  }
}
