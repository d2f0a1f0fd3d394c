import { Fanout, type FanoutDeps, type FanoutView } from "../events/fanout.ts";
import { type FanoutOptions, settingsOf } from "../events/options.ts";
import type { Lease } from "../lease/lease.ts";
import { TapeError } from "../model/errors.ts";
import { acquireExclusively } from "./singleton/exclusive.ts";
import type { SingletonDeps } from "./singleton/term.ts";

const standbyPollMs = 5_000;

/**
 * The fan-outs of one app: each sink once, all stopped together.
 *
 * @example
 * for (const { name, state } of app.fanouts.list()) console.log(name, state);
 */
export class Fanouts {
  readonly #deps: FanoutDeps;
  readonly #byName = new Map<string, Fanout>();

  constructor(deps: SingletonDeps) {
    const { store, keeper } = deps;
    const acquire = (name: string, signal: AbortSignal): Promise<Lease | undefined> => {
      const options = { reactor: "sink", signal, pollMs: standbyPollMs };
      return store.exclusive ? acquireExclusively(name, options, deps) : keeper.acquire(name, options);
    };
    this.#deps = { ...deps, acquire };
  }

  /** Starts a fan-out; its sink must not have one in this app. */
  start(options: FanoutOptions): Fanout {
    const settings = settingsOf(options);
    const { name } = settings;
    const running = this.#byName.get(name);
    if (running !== undefined && running.view().state !== "stopped") {
      throw new TapeError("TAPE_BAD_INPUT", `this app already runs a fan-out ${name}; stop it first`, { name });
    }
    const fanout = new Fanout(this.#deps, settings);
    this.#byName.set(name, fanout);
    return fanout;
  }

  /** The fan-outs of this app. */
  list(): FanoutView[] {
    return [...this.#byName.values()].map((fanout) => fanout.view());
  }

  /** Stops them all, after the events that are under way. */
  async stop(): Promise<void> {
    await Promise.all([...this.#byName.values()].map((fanout) => fanout.stop()));
  }
}
