import { TapeError } from "../../model/errors.ts";
import type { MapOptions, MapOutcome } from "../../sdk/context.ts";
import { assertKnownKeys, booleanOr, numberOf } from "../../sdk/validate.ts";
import { ignoreRejection } from "../replay/stored-value.ts";
import type { Operations } from "./operations.ts";

/** Enough to keep a process busy, and few enough that a slow item is noticed. */
const defaultConcurrency = 10;

/**
 * Calls `fn` for each item, a bounded number at once. It needs no record: operations are delivered in journal order, so
 * a replay starts the items in the order of the first time.
 */
export function mapItems<T, R>(
  ops: Operations,
  items: readonly T[],
  fn: (item: T, index: number) => R | Promise<R>,
  options: MapOptions,
): Promise<(R | MapOutcome<R>)[]> {
  const { mapItems: maxItems, mapConcurrency: max } = ops.drive.options.store.limits;
  if (!Array.isArray(items)) throw new TapeError("TAPE_BAD_INPUT", "tape.map: the items are an array");
  if (typeof fn !== "function") throw new TapeError("TAPE_BAD_INPUT", "tape.map: the second argument is a function");
  assertKnownKeys("tape.map", options, ["concurrency", "settle"]);
  booleanOr("tape.map", "settle", options.settle);
  const concurrency = numberOf("tape.map", "concurrency", options.concurrency, defaultConcurrency, { min: 1, max });
  if (items.length > maxItems) {
    const message = `tape.map: ${items.length} items, at most ${maxItems} are allowed: split them among child runs`;
    throw new TapeError("TAPE_TOO_LARGE", message, { limit: "mapItems" });
  }
  ops.refuseNested("map", "tape.map()");
  // A copy: what the code adds to its array later would differ on replay only if it does, and that is hard to find.
  return ignoreRejection(new Mapping([...items], fn, options.settle === true).run(concurrency));
}

class Mapping<T, R> {
  readonly #items: readonly T[];
  readonly #fn: (item: T, index: number) => R | Promise<R>;
  readonly #settle: boolean;
  readonly #outcomes: (R | MapOutcome<R>)[];
  #next = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(items: readonly T[], fn: (item: T, index: number) => R | Promise<R>, settle: boolean) {
    this.#items = items;
    this.#fn = fn;
    this.#settle = settle;
    this.#outcomes = new Array(items.length);
  }

  /** The first failure stops further starts; it is thrown when those under way are through. */
  async run(concurrency: number): Promise<(R | MapOutcome<R>)[]> {
    const workers = Math.min(concurrency, this.#items.length);
    await Promise.all(Array.from({ length: workers }, () => this.#work()));
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.#outcomes;
  }

  async #work(): Promise<void> {
    while (this.#next < this.#items.length && this.#failure === undefined) {
      const k = this.#next++;
      try {
        const value = await this.#fn(this.#items[k]!, k);
        this.#outcomes[k] = this.#settle ? { status: "fulfilled", value } : value;
      } catch (error) {
        if (this.#settle) this.#outcomes[k] = { status: "rejected", reason: error };
        else this.#failure ??= { error };
      }
    }
  }
}
