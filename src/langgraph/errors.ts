import { providerFault } from "../agent/faults.ts";
import type { ModelCallFailed, ModelFault } from "../agent/model-call.ts";
import { defined } from "../base/defined.ts";

/** LangChain adds a code of its own to errors that it recognises. */
export function faultOf(error: unknown): ModelFault {
  const { code, lc_error_code } = (error ?? {}) as { readonly code?: unknown; readonly lc_error_code?: unknown };
  return providerFault(error, defined({ code, lc_error_code }));
}

/** The provider's error again, as far as the journal has it. Tape has retried it already. */
export const revive = ({ message, facts }: ModelCallFailed): Error => Object.assign(new Error(message), facts);
