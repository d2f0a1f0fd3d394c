import type { Clock } from "../../src/base/clock.ts";
import { TapeError } from "../../src/model/errors.ts";
import type { Transport } from "../../src/protocol/transport.ts";
import type { Store, TransactionOps, WakeHint } from "../../src/store/contract/store.ts";
import { sleepOn } from "./virtual-time.ts";

/** A point at which a process can be interrupted: just before or just after a store call or an effect. */
export interface Boundary {
  readonly what: "store" | "effect";
  /** `fenced.append`, or the name of the effect. */
  readonly name: string;
  /** Counted from 1 within its name. */
  readonly k: number;
  readonly edge: "before" | "after";
  /** The store's result, at the edge `after`. */
  readonly result?: unknown;
}

/**
 * What happens at a boundary. `fail`: the call does not reach the store, or its response is lost. `busy`: the store
 * refuses it for now. `hangMs`: the request or its response is delayed this long, and is still applied.
 */
export type CrashPoint = "crash" | "pause" | "fail" | "busy" | { readonly hangMs: number } | undefined;

export interface ProcessOptions {
  readonly name: string;
  /** The machine's clock, which continues while the process is paused. */
  readonly clock: Clock;
  readonly store: Store;
  /** Called at every boundary: decides what happens to the process there. */
  readonly crashPointAt?: (boundary: Boundary) => CrashPoint;
  /** The current error of this process's wall clock; default: 0. */
  readonly wallOffMs?: () => number;
  /** Travel time of a request or a response; default: 0. */
  readonly travelMs?: () => number;
  /** false: this hint is lost. */
  readonly receivesHint?: (wake: WakeHint) => boolean;
}

/**
 * A simulated process: a clock and a store handle that can be interrupted.
 *
 *   running ⇄ paused (its continuations are postponed; what it has sent still arrives)
 *   running | paused → crashed (its continuations are dropped)
 *
 * Open a Tape with its `clock` and `store`, and give it a runner that goes through `callUpstream` (see runnerIn).
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

  /** A store handle for this process: its calls can be interrupted, and results return only while the process runs. */
  inside<S extends Store>(store: S): S {
    return {
      ...store,
      intake: this.#wrap("intake", store.intake),
      claim: this.#wrap("claim", store.claim),
      fenced: this.#wrap("fenced", store.fenced),
      read: this.#wrap("read", store.read),
      ...(store.within && { within: this.#within(store.within) }),
      ...(store.retention && { retention: this.#wrap("retention", store.retention) }),
      once: (key) => this.#wrap("intake", store.once(key)),
      health: () => store.health(),
      onWake: (listener) => this.#onWake(store, listener),
      close: async () => {},
    };
  }

  /** A transport for this process: a sent request arrives, whatever becomes of its sender. */
  exchange(transport: Transport): Transport {
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
      const result = await back(() => transport({ ...request, ...(signal && { signal }) }));
      if (result.body instanceof Uint8Array) return result;
      const chunks = result.body[Symbol.asyncIterator]();
      const body: AsyncIterableIterator<Uint8Array> = {
        next: () => back(() => chunks.next()),
        return: () => back(async () => (await chunks.return?.()) ?? { done: true, value: undefined }),
        [Symbol.asyncIterator]: () => body,
      };
      return { ...result, body };
    };
  }

  /** The true wall time, which this process's own clock need not show. */
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

  /** Resumes where it was, with everything that arrived meanwhile. It is a zombie if another process took over. */
  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    const held = this.#held;
    this.#held = [];
    for (const fn of held) this.#options.clock.immediate(() => this.#enter(fn));
  }

  /**
   * Calls an effect. Crashed before: never called. Crashed after: the upstream was called, and the response is lost.
   */
  callUpstream<T>(name: string, body: () => T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const k = this.#count(`effect ${name}`);
      this.#crashPointAt({ what: "effect", name, k, edge: "before" });
      this.#enter(() => {
        const end = (deliver: () => void): void => {
          this.#crashPointAt({ what: "effect", name, k, edge: "after" });
          this.#enter(deliver);
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

  #crashPointAt(boundary: Boundary): CrashPoint {
    if (this.#state !== "running") return undefined;
    const crashPoint = this.#options.crashPointAt?.(boundary);
    if (crashPoint === "crash") this.crash();
    else if (crashPoint === "pause") this.pause();
    return crashPoint;
  }

  #count(what: string): number {
    const k = (this.#counts.get(what) ?? 0) + 1;
    this.#counts.set(what, k);
    return k;
  }

  #onWake(store: Store, listener: (wake: WakeHint) => void): () => void {
    let listening = true;
    const unsubscribe = store.onWake((wake) => {
      if (this.#options.receivesHint?.(wake) === false) return;
      this.#enter(() => {
        if (listening) listener(wake);
      });
    });
    return () => {
      listening = false;
      unsubscribe();
    };
  }

  /** The commit of a step is a call like any other: it may be delayed, lost or applied unnoticed. */
  #within(within: TransactionOps): TransactionOps {
    return {
      ...this.#wrap("within", within),
      step: (source, body) => {
        const step = within.step(source, body);
        const { commit } = this.#wrap("within", { commit: step.commit.bind(step) });
        return {
          execute: () => step.execute(),
          commit,
          rollback: () => step.rollback(),
          abort: (error) => step.abort(error),
        };
      },
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
        const before = this.#crashPointAt({ what: "store", name, k, edge: "before" });
        const refused = refusalOf(before, name);
        if (refused !== undefined) {
          this.#travel(() => this.#enter(() => reject(refused)));
          return;
        }
        const arrive = (deliver: () => void, result?: unknown): void => {
          const after = this.#crashPointAt({ what: "store", name, k, edge: "after", result });
          const message = `the response of ${name} was lost (injected)`;
          const error =
            after === "fail" ? new TapeError("TAPE_OUTCOME_UNKNOWN", message, { injected: true }) : undefined;
          this.#travel(() => this.#enter(() => (error === undefined ? deliver() : reject(error))), hangOf(after));
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

  /** Delivers what is on its way, whatever becomes of its sender. */
  #travel(fn: () => void, moreMs = 0): void {
    const ms = (this.#options.travelMs?.() ?? 0) + moreMs;
    if (ms > 0) this.#options.clock.after(ms, fn);
    else fn();
  }
}

const hangOf = (crashPoint: CrashPoint): number => (typeof crashPoint === "object" ? crashPoint.hangMs : 0);

function refusalOf(crashPoint: CrashPoint, name: string): TapeError | undefined {
  if (crashPoint === "fail")
    return new TapeError("TAPE_STORE_UNREACHABLE", `${name} was not sent (injected)`, { injected: true });
  if (crashPoint === "busy")
    return new TapeError("TAPE_STORE_BUSY", `${name} has to wait (injected)`, { injected: true });
  return undefined;
}
