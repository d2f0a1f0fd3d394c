import type { Clock } from "../../src/base/clock.ts";
import { TapeError } from "../../src/model/errors.ts";
import type { Transport } from "../../src/protocol/transport.ts";
import type { Store, WakeHint } from "../../src/store/contract/store.ts";
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

/**
 * `fail`: the call does not reach the store, or its answer is lost. `busy`: the store refuses it for now. `hangMs`: the
 * request, or its answer, is on its way for so long, and is carried out however late it comes.
 */
export type CrashPoint = "crash" | "pause" | "fail" | "busy" | { readonly hangMs: number } | undefined;

export interface ProcessOptions {
  readonly name: string;
  /** The machine's time, which goes on while the process does not. */
  readonly clock: Clock;
  readonly store: Store;
  /** Asked at every boundary: what happens to the process there. */
  readonly strike?: (boundary: Boundary) => CrashPoint;
  /** By how much the wall clock of this process is wrong, now; default: not at all. */
  readonly wallOffMs?: () => number;
  /** How long a request or an answer travels; default: not at all. */
  readonly travelMs?: () => number;
  /** false: this hint gets lost. */
  readonly hears?: (wake: WakeHint) => boolean;
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
  readonly #gone = new AbortController();

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.name = options.name;
    const { clock, store } = options;
    this.clock = {
      mono: () => clock.mono(),
      wall: () => clock.wall() + (options.wallOffMs?.() ?? 0),
      boot: () => clock.boot(),
      after: (ms, fn) => this.#after(ms, fn),
      immediate: (fn) => clock.immediate(() => this.#enter(fn)),
      sleep: (ms, signal) => sleepOn(this.clock, ms, signal),
    };
    this.store = this.inside(store);
  }

  /** A store handle as this process has it: its calls can be cut, and its answers come back only while it lives. */
  inside<S extends Store>(store: S): S {
    return {
      ...store,
      intake: this.#wrap("intake", store.intake),
      claim: this.#wrap("claim", store.claim),
      fenced: this.#wrap("fenced", store.fenced),
      read: this.#wrap("read", store.read),
      once: (key) => this.#wrap("intake", store.once(key)),
      health: () => store.health(),
      onWake: (listener) => this.#onWake(store, listener),
      close: async () => {},
    };
  }

  /** A way to a server as this process has it: what has left arrives, whatever becomes of its sender. */
  exchange(way: Transport): Transport {
    const back = <T>(work: () => Promise<T>): Promise<T> =>
      new Promise((resolve, reject) =>
        this.#enter(() =>
          work().then(
            (value) => this.#enter(() => resolve(value)),
            (error: unknown) => this.#enter(() => reject(error)),
          ),
        ),
      );
    return async (request) => {
      const signal = request.signal && AbortSignal.any([request.signal, this.#gone.signal]);
      const answer = await back(() => way({ ...request, ...(signal && { signal }) }));
      if (answer.body instanceof Uint8Array) return answer;
      const chunks = answer.body[Symbol.asyncIterator]();
      const body: AsyncIterableIterator<Uint8Array> = {
        next: () => back(() => chunks.next()),
        return: () => back(async () => (await chunks.return?.()) ?? { done: true, value: undefined }),
        [Symbol.asyncIterator]: () => body,
      };
      return { ...answer, body };
    };
  }

  /** The time outside, which no clock of this process need show. */
  get at(): number {
    return this.#options.clock.wall();
  }

  get state(): "running" | "paused" | "crashed" {
    return this.#state;
  }

  crash(): void {
    this.#state = "crashed";
    this.#held = [];
    this.#gone.abort("crashed"); // its connections break
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
    for (const fn of held) this.#options.clock.immediate(() => this.#enter(fn));
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

  #strike(boundary: Boundary): CrashPoint {
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

  #onWake(store: Store, listener: (wake: WakeHint) => void): () => void {
    let listening = true;
    const unsubscribe = store.onWake((wake) => {
      if (this.#options.hears?.(wake) === false) return;
      this.#enter(() => {
        if (listening) listener(wake);
      });
    });
    return () => {
      listening = false;
      unsubscribe();
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
        const before = this.#strike({ what: "store", name, k, edge: "before" });
        const refused = refusalOf(before, name);
        if (refused !== undefined) {
          this.#travel(() => this.#enter(() => reject(refused)));
          return;
        }
        const arrive = (tell: () => void, answer?: unknown): void => {
          const after = this.#strike({ what: "store", name, k, edge: "after", answer });
          const message = `the answer of ${name} was lost (injected)`;
          const error =
            after === "fail" ? new TapeError("TAPE_OUTCOME_UNKNOWN", message, { injected: true }) : undefined;
          this.#travel(() => this.#enter(() => (error === undefined ? tell() : reject(error))), hangOf(after));
        };
        this.#enter(() =>
          this.#travel(
            () =>
              work().then(
                (value) => arrive(() => resolve(value), value),
                (error: unknown) => arrive(() => reject(error), error),
              ),
            hangOf(before),
          ),
        );
      });
    });
  }

  /** What is on its way arrives, whatever becomes of its sender. */
  #travel(fn: () => void, moreMs = 0): void {
    const ms = (this.#options.travelMs?.() ?? 0) + moreMs;
    if (ms > 0) this.#options.clock.after(ms, fn);
    else fn();
  }
}

const hangOf = (strike: CrashPoint): number => (typeof strike === "object" ? strike.hangMs : 0);

function refusalOf(strike: CrashPoint, name: string): TapeError | undefined {
  if (strike === "fail")
    return new TapeError("TAPE_STORE_UNREACHABLE", `${name} was not sent (injected)`, { injected: true });
  if (strike === "busy") return new TapeError("TAPE_STORE_BUSY", `${name} has to wait (injected)`, { injected: true });
  return undefined;
}
