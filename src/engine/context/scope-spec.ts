import type { Duration } from "../../base/duration.ts";
import type { ScopeOptions } from "../../sdk/scope.ts";
import { assertKnownKeys, booleanOr } from "../../sdk/validate.ts";
import { wholeMs } from "../../sdk/workflow.ts";
import type { ScopeSpec } from "./scope.ts";

/** How long a shielded scope may take without a time-out of its own: the run may be waiting to end. */
const defaultShieldMs = 30_000;

export function scopeSpec(options: ScopeOptions): ScopeSpec {
  assertKnownKeys("tape.scope", options, ["timeout", "shielded"]);
  const { timeout, shielded = false } = options;
  booleanOr("tape.scope", "shielded", shielded);
  const given = timeout === undefined ? undefined : wholeMs("tape.scope", "timeout", timeout);
  return { name: "scope", timeoutMs: given ?? (shielded ? defaultShieldMs : undefined), shielded, saga: false };
}

export function timeoutSpec(duration: Duration): ScopeSpec {
  const timeoutMs = wholeMs("tape.timeout", "its duration", duration);
  return { name: "timeout", timeoutMs, shielded: false, saga: false };
}

export const sagaSpec: ScopeSpec = { name: "saga", timeoutMs: undefined, shielded: false, saga: true };
