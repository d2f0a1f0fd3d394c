import { providerFault } from "./faults.ts";
import type { ModelCallFailed, ModelFault } from "./model-call.ts";

/**
 * Classes of errors by name, from modules that may not be installed. A journal has names and fields; users catch classes.
 */
export class ErrorClasses {
  readonly #modules: readonly (() => Promise<object>)[];
  readonly #prototypes = new Map<string, object>();
  #loading: Promise<void> | undefined;

  /** The first module that has a name wins. */
  constructor(modules: readonly (() => Promise<object>)[]) {
    this.#modules = modules;
  }

  /** To be awaited before a model call, because a failure is revived without a wait. */
  load(): Promise<void> {
    this.#loading ??= this.#loadAll();
    return this.#loading;
  }

  async #loadAll(): Promise<void> {
    for (const load of this.#modules) {
      const module = await load().catch(() => ({}));
      for (const [name, found] of Object.entries(module)) {
        const prototype = typeof found === "function" ? (found.prototype as unknown) : undefined;
        if (prototype instanceof Error && !this.#prototypes.has(name)) this.#prototypes.set(name, prototype);
      }
    }
  }

  /** Clients call many of their errors `Error`, so the class is asked for its name. */
  faultOf(error: unknown, facts: Readonly<Record<string, unknown>> = {}): ModelFault {
    const about = error instanceof Error ? { kind: error.constructor.name, message: error.message } : {};
    return providerFault(error, { ...about, ...facts });
  }

  /** An error of the recorded class with the fields that were kept. Headers and bodies may hold secrets. */
  revive({ message, facts }: ModelCallFailed): Error {
    const { kind, name, message: original, ...fields } = facts;
    const error = new Error(typeof original === "string" ? original : message);
    const prototype = this.#prototypes.get(String(kind));
    if (prototype !== undefined) Object.setPrototypeOf(error, prototype);
    return Object.assign(error, fields, name === error.name ? {} : { name });
  }
}
