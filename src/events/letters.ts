import { reasonOf } from "../base/reason.ts";
import type { Fence } from "../model/fence.ts";
import type { TermDeps } from "./deps.ts";
import type { LaneItem, Refusal } from "./lanes.ts";

/** With this many, the sink refuses nearly everything, and an operator must see why. */
export const maxOpenLetters = 1_000;
const maxCodeLength = 64;

/** Repeats a call until the store has answered it; undefined: the term is over. */
type Retry = <T>(call: () => Promise<T>) => Promise<T | undefined>;

/** The dead letters of one sink, as its fan-out writes and counts them. */
export class Letters {
  readonly #deps: TermDeps;
  readonly #sink: string;
  readonly #fence: Fence;
  readonly #retry: Retry;
  #open = 0;

  constructor(deps: TermDeps, sink: string, fence: Fence, retry: Retry) {
    this.#deps = deps;
    this.#sink = sink;
    this.#fence = fence;
    this.#retry = retry;
  }

  async count(): Promise<void> {
    const { store, tenant } = this.#deps;
    const page = await this.#retry(() => store.read.deadLetters(tenant, this.#sink, { limit: maxOpenLetters }));
    this.#open = page?.length ?? 0;
  }

  /** Counts again first: an operator may have settled some. */
  async tooMany(): Promise<boolean> {
    if (this.#open >= maxOpenLetters) await this.count();
    return this.#open >= maxOpenLetters;
  }

  /** undefined: the term is over, and nothing may be written. */
  async store({ event, source }: LaneItem, { attempts, code, error }: Refusal): Promise<true | undefined> {
    const { store, log } = this.#deps;
    const text = reasonOf(error).slice(0, store.limits.nameLength).replaceAll("\0", "\ufffd").toWellFormed();
    const letter = { event: event.id, ...source, attempts, code: code.slice(0, maxCodeLength), error: text };
    const stored = await this.#retry(async () => {
      await store.fenced.deadLetter(this.#fence, letter);
      return true as const;
    });
    if (stored === undefined) return undefined;
    this.#open++;
    const { kind } = source;
    log("error", "sink.dead_letter", { sink: this.#sink, event: event.id, kind, code: letter.code, error: text });
    return stored;
  }

  /** The replay of a letter was delivered. */
  async sent({ event }: LaneItem): Promise<void> {
    const { store, log } = this.#deps;
    await this.#retry(() => store.fenced.letterSent(this.#fence, event.id).then(() => true));
    log("info", "sink.replayed", { sink: this.#sink, event: event.id });
  }
}
