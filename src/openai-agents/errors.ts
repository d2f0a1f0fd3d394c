import * as agents from "@openai/agents";
import { providerFault } from "../agent/faults.ts";
import type { ModelCallFailed, ModelFault } from "../agent/model-call.ts";
import { defined } from "../base/defined.ts";

type ErrorClass = new (...args: never) => Error;

/** Classes of errors by name: those of the framework, and of OpenAI's client where it is installed. */
const classes = new Map<string, ErrorClass>();
let loading: Promise<void> | undefined;

export function loadErrorClasses(): Promise<void> {
  loading ??= import("openai").then(addAll, () => {}).then(() => addAll(agents));
  return loading;
}

function addAll(module: object): void {
  for (const [name, found] of Object.entries(module)) {
    if (typeof found === "function" && found.prototype instanceof Error) classes.set(name, found as ErrorClass);
  }
}

/** OpenAI's client calls all of its errors `Error`, so the class is asked for its name. */
export function faultOf(error: unknown): ModelFault {
  const { code, type, param, requestID } = (error ?? {}) as Record<string, unknown>;
  const kind = error instanceof Error ? error.constructor.name : undefined;
  return providerFault(error, defined({ kind, code, type, param, requestID }));
}

/** An error of the recorded class with the fields that were kept. Headers and bodies may hold secrets. */
export function revive({ message, facts }: ModelCallFailed): Error {
  const { kind, name, ...fields } = facts;
  const prototype = classes.get(String(kind))?.prototype as object | undefined;
  const error = new Error(message, {});
  if (prototype !== undefined) Object.setPrototypeOf(error, prototype);
  return Object.assign(error, fields, name === error.name ? {} : { name });
}
