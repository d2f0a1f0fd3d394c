import type { DecisionDetails } from "../../sdk/context.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { OperationHandle } from "../core/operation.ts";
import { genAiAttributes, usageAttributes } from "../journal/gen-ai.ts";
import { isThenable } from "../replay/stored-value.ts";

/**
 * Reports the call of a model that a decision makes, once its body has returned or thrown: to the figures of the process
 * and to the span of the decision. A replayed decision does not come here. Without a model nothing is reported.
 */
export function reportModelCall<T>(
  { options, spans }: DriveHandle,
  handle: OperationHandle<unknown>,
  made: T | Promise<T>,
  details: () => DecisionDetails,
): T | Promise<T> {
  if (options.onModelCall === undefined && spans === undefined) return made;
  const report = (outcome: "ok" | "failed"): void => {
    const { model, usage } = details();
    if (model === undefined) return;
    options.onModelCall?.({ model, outcome, ...(usage !== undefined && outcome === "ok" && { usage }) });
    if (spans !== undefined) {
      handle.describe({ ...genAiAttributes(handle.name, model), ...(outcome === "ok" && usageAttributes(usage)) });
    }
  };
  if (isThenable(made)) {
    made.then(
      () => report("ok"),
      () => report("failed"),
    );
  } else report("ok");
  return made;
}
