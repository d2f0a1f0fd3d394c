import { TapeError } from "../../model/errors.ts";
import { Singleton, type SingletonOptions, type SingletonView } from "./singleton.ts";
import type { SingletonDeps, SingletonWork } from "./term.ts";

/** The singletons of one app: each name once, all stopped together. */
export class Singletons {
  readonly #deps: SingletonDeps;
  readonly #byName = new Map<string, Singleton>();

  constructor(deps: SingletonDeps) {
    this.#deps = deps;
  }

  async start(name: string, work: SingletonWork, options: SingletonOptions): Promise<Singleton> {
    if (this.#byName.has(name)) {
      throw new TapeError("TAPE_BAD_INPUT", `this app already runs a singleton ${name}; stop it first`, { name });
    }
    const singleton = new Singleton(name, work, options, this.#deps);
    this.#byName.set(name, singleton);
    singleton.onChange((state) => {
      if (state === "stopped" && this.#byName.get(name) === singleton) this.#byName.delete(name);
    });
    try {
      await singleton.start();
    } catch (error) {
      this.#byName.delete(name);
      throw error;
    }
    return singleton;
  }

  list(): SingletonView[] {
    return [...this.#byName.values()].map((singleton) => singleton.view());
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#byName.values()].map((singleton) => singleton.stop()));
  }
}
