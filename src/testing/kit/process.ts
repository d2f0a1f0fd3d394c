import type { Clock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";
import type { Store, Wake } from "../../store/contract.ts";
import { sleepOn } from "./virtual-time.ts";

/** A place where a process can be cut: just before or just after a store call or an act on the world. */
export interface Boundary {
  readonly what: "store" | "act";
  /** `fenced.append`, or the name of the effect. */
  readonly name: string;
  /** Counted from 1 within its name. */
  readonly k: number;
  readonly edge: "before" | "after";
  /** What the store answered, at the edge after. */
  readonly answer?: unknown;
}

/** `fail`: the call does not reach the store, or its answer is lost. */
export type Strike = "crash" | "pause" | "fail" | undefined;

export interface ProcessOptions {
  readonly name: string;
  /** The machine's time, which goes on while the process does not. */
  readonly clock: Clock;
  readonly store: Store;
  /** Asked at every boundary: what happens to the process there. */
  readonly strike?: (boundary: Boundary) => Strike;
  /** How long a request or an answer travels; default: not at all. */
  readonly travelMs?: () => number;
  /** false: this hint gets lost. */
  readonly hears?: (wake: Wake) => boolean;
}

/**
 * A process inside the process: a clock and a store handle that can be cut.
 *
 *   running ⇄ paused (its continuations are postponed; what it has sent arrives nevertheless)
 *   running | paused → crashed (its continuations are dropped for ever)
 *
 * Open a Tape with `clock` and `store` of it, and give it a runner that goes through `act` (see runnerIn).
 */
export class TestProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly store: Store;
  readonly #options: ProcessOptions;
  readonly #counts = new Map<string, number>();
  #state: "running" | "paused" | "crashed" = "running";
  #held: (() => void)[] = [];

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.name = options.name;
    const { clock, store } = options;
    this.clock = {
      mono: () => clock.mono(),
      wall: () => clock.wall(),
      boot: () => clock.boot(),
      after: (ms, fn) => this.#after(ms, fn),
      soon: (fn) => clock.soon(() => this.#enter(fn)),
      sleep: (ms, signal) => sleepOn(this.clock, ms, signal),
    };
    const { backend, limits, transactionBoundMs, exclusive } = store;
    this.store = {
      backend,
      limits,
      transactionBoundMs,
      exclusive,
      intake: this.#wrap("intake", store.intake),
      claim: this.#wrap("claim", store.claim),
      fenced: this.#wrap("fenced", store.fenced),
      read: this.#wrap("read", store.read),
      once: (key) => this.#wrap("intake", store.once(key)),
      health: () => store.health(),
      onWake: (listener) => this.#onWake(listener),
      close: async () => {},
    };
  }

  get state(): "running" | "paused" | "crashed" {
    return this.#state;
  }

  crash(): void {
    this.#state = "crashed";
    this.#held = [];
  }

  pause(): void {
    if (this.#state === "running") this.#state = "paused";
  }

  /** Goes on where it was, with everything that came meanwhile: a zombie, if others took over. */
  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    const held = this.#held;
    this.#held = [];
    for (const fn of held) this.#options.clock.soon(() => this.#enter(fn));
  }

  /** Calls into the world. A crash before it: never called; after it: the world has seen it, nobody hears the answer. */
  act<T>(name: string, body: () => T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const k = this.#count(`act ${name}`);
      this.#strike({ what: "act", name, k, edge: "before" });
      this.#enter(() => {
        const end = (tell: () => void): void => {
          this.#strike({ what: "act", name, k, edge: "after" });
          this.#enter(tell);
        };
        let result: T | Promise<T>;
        try {
          result = body();
        } catch (error) {
          end(() => reject(error));
          return;
        }
        if (!(result instanceof Promise)) end(() => resolve(result));
        else
          result.then(
            (value) => end(() => resolve(value)),
            (error: unknown) => end(() => reject(error)),
          );
      });
    });
  }

  #after(ms: number, fn: () => void): () => void {
    let cancelled = false;
    const cancel = this.#options.clock.after(ms, () =>
      this.#enter(() => {
        if (!cancelled) fn();
      }),
    );
    return () => {
      cancelled = true;
      cancel();
    };
  }

  /** The only way back into the process. */
  #enter(fn: () => void): void {
    if (this.#state === "running") fn();
    else if (this.#state === "paused") this.#held.push(fn);
  }

  #strike(boundary: Boundary): Strike {
    if (this.#state !== "running") return undefined;
    const strike = this.#options.strike?.(boundary);
    if (strike === "crash") this.crash();
    else if (strike === "pause") this.pause();
    return strike;
  }

  #count(what: string): number {
    const k = (this.#counts.get(what) ?? 0) + 1;
    this.#counts.set(what, k);
    return k;
  }

  #onWake(listener: (wake: Wake) => void): () => void {
    let listening = true;
    const deaf = this.#options.store.onWake((wake) => {
      if (this.#options.hears?.(wake) === false) return;
      this.#enter(() => {
        if (listening) listener(wake);
      });
    });
    return () => {
      listening = false;
      deaf();
    };
  }

  #wrap<G extends object>(group: string, target: G): G {
    return new Proxy(target, {
      get: (_, key) => {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== "function" || typeof key !== "string") return member;
        return (...args: unknown[]) =>
          this.#call(`${group}.${key}`, async () => Reflect.apply(member, target, args) as unknown);
      },
    });
  }

  #call(name: string, work: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#enter(() => {
        const k = this.#count(name);
        if (this.#strike({ what: "store", name, k, edge: "before" }) === "fail") {
          const error = new TapeError("TAPE_STORE_UNREACHABLE", `${name} was not sent (injected)`, { injected: true });
          this.#travel(() => this.#enter(() => reject(error)));
          return;
        }
        const arrive = (tell: () => void, answer?: unknown): void => {
          const lost = this.#strike({ what: "store", name, k, edge: "after", answer }) === "fail";
          const message = `the answer of ${name} was lost (injected)`;
          const error = lost ? new TapeError("TAPE_OUTCOME_UNKNOWN", message, { injected: true }) : undefined;
          this.#travel(() => this.#enter(() => (error === undefined ? tell() : reject(error))));
        };
        this.#enter(() =>
          this.#travel(() =>
            work().then(
              (value) => arrive(() => resolve(value), value),
              (error: unknown) => arrive(() => reject(error), error),
            ),
          ),
        );
      });
    });
  }

  /** What is on its way arrives, whatever becomes of its sender. */
  #travel(fn: () => void): void {
    const ms = this.#options.travelMs?.() ?? 0;
    if (ms > 0) this.#options.clock.after(ms, fn);
    else fn();
  }
}
