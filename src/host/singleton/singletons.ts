import { TapeError } from "../../model/errors.ts";
import { type ShardedOptions, ShardedSingleton, type ShardsDeps } from "./sharded-singleton.ts";
import { Singleton, type SingletonOptions, type SingletonView } from "./singleton.ts";
import type { SingletonWork } from "./term.ts";

/** How many shards of a singleton this process holds, and how many no process takes. */
export interface HeldShards {
  readonly name: string;
  readonly held: number;
  readonly unheld: number;
}

/** The singletons of one app: each name once, all stopped together. */
export class Singletons {
  readonly #deps: ShardsDeps;
  readonly #byName = new Map<string, Singleton | ShardedSingleton>();

  constructor(deps: ShardsDeps) {
    this.#deps = deps;
  }

  async startShards(name: string, work: SingletonWork, options: ShardedOptions): Promise<ShardedSingleton> {
    this.#assertFree(name);
    const sharded = new ShardedSingleton(name, work, options, this.#deps);
    this.#byName.set(name, sharded);
    try {
      await sharded.start();
    } catch (error) {
      this.#byName.delete(name);
      throw error;
    }
    return sharded;
  }

  #assertFree(name: string): void {
    const known = this.#byName.get(name);
    if (known === undefined || known.view().state === "stopped") return;
    throw new TapeError("TAPE_BAD_INPUT", `this app already runs a singleton ${name}; stop it first`, { name });
  }

  async start(name: string, work: SingletonWork, options: SingletonOptions): Promise<Singleton> {
    this.#assertFree(name);
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
    return [...this.#byName.values()].map((one) => one.view()).filter(({ state }) => state !== "stopped");
  }

  /** Of the sharded singletons. */
  shards(): HeldShards[] {
    return [...this.#byName.values()].flatMap((one) =>
      one instanceof ShardedSingleton ? [{ name: one.name, held: one.shards.length, unheld: one.unheld }] : [],
    );
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#byName.values()].map((singleton) => singleton.stop()));
  }
}
