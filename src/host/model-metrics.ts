import type { Metrics } from "../base/metrics.ts";
import type { ModelFigures } from "../engine/core/handle.ts";

/** More models than this are counted as "other": each one is a series in every scrape. */
const maxModels = 50;
const maxNameChars = 100;

/** Counts the calls of models that a process makes. */
export function countedModels(registry: Metrics): (call: ModelFigures) => void {
  const calls = registry.counter(
    "tape_model_calls_total",
    "Calls of models that this process has made, by model and outcome.",
  );
  const tokens = registry.counter("tape_model_tokens_total", "Tokens of those calls, by model and direction.");
  const cost = registry.counter("tape_model_cost_usd_total", "Their cost in US dollars, where a price is known.");
  const known = new Set<string>();
  const labelOf = (name: string): string => {
    const label = name.slice(0, maxNameChars);
    if (!known.has(label) && known.size >= maxModels) return "other";
    known.add(label);
    return label;
  };
  return ({ model: name, outcome, usage }) => {
    const model = labelOf(name);
    calls({ model, outcome });
    for (const direction of ["input", "output"] as const) {
      const count = usage?.[direction];
      if (count !== undefined && count > 0) tokens({ model, direction }, count);
    }
    if (usage?.usd !== undefined && usage.usd > 0) cost({}, usage.usd);
  };
}
