import type { SpanAttributes } from "../../base/trace.ts";
import type { DecisionDetails } from "../../sdk/context.ts";

/** "clerk 3 #1a2b3c4d" and "clerk 3" are calls of the agent clerk. */
const callNumber = / \d+( #[0-9a-f]{8})?$/;

/** Attributes of the semantic conventions of OpenTelemetry for the call of a model, `provider/model`. */
export function genAiAttributes(name: string, model: string): SpanAttributes {
  const slash = model.indexOf("/");
  return {
    "gen_ai.operation.name": "chat",
    ...(slash > 0 && { "gen_ai.provider.name": model.slice(0, slash) }),
    "gen_ai.request.model": model.slice(slash + 1),
    "gen_ai.agent.name": name.replace(callNumber, ""),
  };
}

const usageNames = [
  ["input", "gen_ai.usage.input_tokens"],
  ["output", "gen_ai.usage.output_tokens"],
  ["cached", "gen_ai.usage.cache_read.input_tokens"],
  ["cacheWrite", "gen_ai.usage.cache_creation.input_tokens"],
  ["reasoning", "gen_ai.usage.reasoning.output_tokens"],
  ["usd", "tape.cost_usd"],
] as const;

/** What a call used. A replayed one used nothing, so its span has none of these: sums over spans stay right. */
export function usageAttributes(usage: DecisionDetails["usage"]): SpanAttributes {
  if (usage === undefined) return {};
  return Object.fromEntries(
    usageNames.flatMap(([unit, attribute]) => (usage[unit] === undefined ? [] : [[attribute, usage[unit]]])),
  );
}
