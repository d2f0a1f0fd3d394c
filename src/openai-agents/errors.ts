import * as agents from "@openai/agents";
import { ErrorClasses } from "../agent/error-classes.ts";
import type { ModelFault } from "../agent/model-call.ts";
import { defined } from "../base/defined.ts";

/** Those of the framework, and of OpenAI's client where it is installed. */
export const errorClasses = new ErrorClasses([async () => agents, () => import("openai")]);

export function faultOf(error: unknown): ModelFault {
  const { code, type, param, requestID } = (error ?? {}) as Record<string, unknown>;
  return errorClasses.faultOf(error, defined({ code, type, param, requestID }));
}
