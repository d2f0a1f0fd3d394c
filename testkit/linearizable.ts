/**
 * A sequential model of the object under test. A history is linearizable if one order of its operations, each taking
 * effect between its call and its return, is explained by the model. The search is Wing & Gong's, with Lowe's cache of
 * configurations (operations done, state reached).
 */
export interface SequentialModel<S, I, O> {
  init(): S;
  /** Whether `output` fits, and the state afterwards. An undefined output is unknown: only the next state counts. */
  step(state: S, input: I, output: O | undefined): { readonly ok: boolean; readonly state: S };
  /** Equal keys must mean equal states. */
  key(state: S): string;
  /**
   * Inputs with equal strings must change every state alike. Default: only equal inputs do. Saves much of the search.
   */
  effect?(input: I): string;
}

export interface Operation<I, O> {
  readonly call: number;
  /**
   * Infinity: the outcome is unknown. The operation may have taken effect at any time since its call, or never.
   * Operations still open at the end of the recording count too: leaving them out would accuse a correct store.
   */
  readonly ret: number;
  readonly input: I;
  readonly output?: O;
}

export type Verdict = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** The search was aborted without a verdict. It is an exception so that a test cannot take it for either verdict. */
export class UndecidedError extends Error {
  constructor(states: number) {
    super(`undecided after ${states} states; check a shorter history, or one key at a time`);
    this.name = "UndecidedError";
  }
}

/** Some 100 MB of cache. A correct history of 1000 operations needs a few thousand states. */
const defaultMaxStates = 1_000_000;

/**
 * Checks whether a history of concurrent operations is linearizable.
 *
 * @example
 * const verdict = checkLinearizable(leaseModel, history);
 * if (!verdict.ok) throw new Error(verdict.reason);
 */
export function checkLinearizable<S, I, O>(
  model: SequentialModel<S, I, O>,
  history: readonly Operation<I, O>[],
  maxStates: number = defaultMaxStates,
): Verdict {
  return new Search(model, history, maxStates).run();
}

/** Unknown operations are tried last: known ones explain most of a history. */
class Search<S, I, O> {
  readonly #model: SequentialModel<S, I, O>;
  readonly #history: readonly Operation<I, O>[];
  readonly #maxStates: number;
  readonly #head: Entry;
  readonly #unknown: readonly Operation<I, O>[];
  readonly #earlierTwin: readonly (number | undefined)[];
  /** Configurations reached (open known operations, state), each with the sets of unknown operations used there. */
  readonly #seen = new Map<string, bigint[]>();
  #states = 0;
  /**
   * The choices so far. At a call: that operation. At a return that no known operation fits: the unknown one at
   * `index`.
   */
  readonly #taken: { readonly entry: Entry; readonly index: number; readonly before: S }[] = [];
  #state: S;
  /** Unknown operations that were chosen, as bits. */
  #used = 0n;
  #best = { placed: -1, stuckAt: -1, state: "" };
  #entry: Entry | undefined;
  #index = 0;
  /** Known operations that were chosen. */
  #placed = 0;

  constructor(model: SequentialModel<S, I, O>, history: readonly Operation<I, O>[], maxStates: number) {
    this.#model = model;
    this.#history = history;
    this.#maxStates = maxStates;
    this.#head = link(history);
    this.#unknown = history.filter(({ ret }) => ret === Number.POSITIVE_INFINITY).sort((a, b) => a.call - b.call);
    this.#earlierTwin = twins(this.#unknown.map(({ input }) => model.effect?.(input) ?? show(input)));
    this.#state = model.init();
    this.#entry = this.#head.next;
  }

  run(): Verdict {
    this.#isNew(this.#model.key(this.#state), this.#used);
    while (this.#entry !== undefined) {
      const entry = this.#entry;
      if (!entry.isReturn) this.#tryKnown(entry);
      else if (this.#index < this.#unknown.length && this.#unknown[this.#index]!.call <= entry.time) this.#tryUnknown();
      else if (!this.#backtrack(entry)) return { ok: false, reason: this.#explain() };
    }
    return { ok: true };
  }

  #tryKnown(entry: Entry): void {
    const { input, output } = this.#history[entry.id]!;
    const next = this.#model.step(this.#state, input, output);
    if (next.ok) {
      unlink(entry);
      if (this.#isNew(this.#model.key(next.state), this.#used)) {
        this.#choose(next.state);
        this.#placed++;
        return;
      }
      relink(entry);
    }
    this.#entry = entry.next;
  }

  #tryUnknown(): void {
    const bit = 1n << BigInt(this.#index);
    // Of equivalent operations, only the one called first is tried: it is free whenever the others are.
    const twin = this.#earlierTwin[this.#index];
    if ((this.#used & bit) === 0n && (twin === undefined || (this.#used & (1n << BigInt(twin))) !== 0n)) {
      const next = this.#model.step(this.#state, this.#unknown[this.#index]!.input, undefined);
      if (next.ok && this.#isNew(this.#model.key(next.state), this.#used | bit)) {
        this.#choose(next.state);
        this.#used |= bit;
        return;
      }
    }
    this.#index++;
  }

  /** The operation of this return has not been placed: one of the choices was wrong. false: there is none left. */
  #backtrack(entry: Entry): boolean {
    if (this.#placed > this.#best.placed) {
      this.#best = { placed: this.#placed, stuckAt: entry.id, state: this.#model.key(this.#state) };
    }
    const last = this.#taken.pop();
    if (last === undefined) return false;
    this.#state = last.before;
    if (last.entry.isReturn) {
      this.#used ^= 1n << BigInt(last.index);
      this.#entry = last.entry;
      this.#index = last.index + 1;
    } else {
      relink(last.entry);
      this.#placed--;
      this.#entry = last.entry.next;
      this.#index = 0;
    }
    return true;
  }

  #choose(next: S): void {
    this.#taken.push({ entry: this.#entry!, index: this.#index, before: this.#state });
    this.#state = next;
    this.#entry = this.#head.next;
    this.#index = 0;
  }

  /**
   * Whether this configuration is new. An earlier visit that used fewer unknown operations had every option that this
   * one has. This also drops unknown operations that change nothing.
   */
  #isNew(key: string, use: bigint): boolean {
    // The calls up to the first return identify what is done: nothing called later can be.
    let place = "";
    for (let open = this.#head.next; open !== undefined; open = open.isReturn ? undefined : open.next) {
      place += `${open.id} `;
    }
    place += `| ${key}`;
    const visits = this.#seen.get(place);
    if (visits?.some((earlier) => (earlier & ~use) === 0n)) return false;
    if (++this.#states > this.#maxStates) throw new UndecidedError(this.#maxStates);
    if (visits === undefined) this.#seen.set(place, [use]);
    else visits.push(use);
    return true;
  }

  #explain(): string {
    const { placed, stuckAt, state } = this.#best;
    const { call, ret, input, output } = this.#history[stuckAt]!;
    const total = this.#history.length - this.#unknown.length;
    return (
      `no legal order places operation ${stuckAt}, ${show(input)} → ${show(output)} (called ${call}, returned ` +
      `${ret}); the longest one has ${placed} of ${total} operations and ends in state ${state}`
    );
  }
}

/** The calls and returns of known operations in time order, linked so that one is removed and reinserted in O(1). */
interface Entry {
  readonly id: number;
  readonly time: number;
  readonly isReturn: boolean;
  /** The return of a call. */
  ret: Entry | undefined;
  prev: Entry | undefined;
  next: Entry | undefined;
}

function link<I, O>(history: readonly Operation<I, O>[]): Entry {
  const entries: Entry[] = [];
  for (const [id, { call, ret }] of history.entries()) {
    if (!(call <= ret)) throw new RangeError(`operation ${id} returned at ${ret}, before its call at ${call}`);
    if (ret === Number.POSITIVE_INFINITY) continue;
    const end: Entry = { id, time: ret, isReturn: true, ret: undefined, prev: undefined, next: undefined };
    entries.push({ id, time: call, isReturn: false, ret: end, prev: undefined, next: undefined }, end);
  }
  // At equal times calls come first: operations that only touch count as concurrent, which never accuses a correct
  // store.
  entries.sort((a, b) => a.time - b.time || Number(a.isReturn) - Number(b.isReturn));
  const head: Entry = { id: -1, time: -1, isReturn: false, ret: undefined, prev: undefined, next: undefined };
  let last = head;
  for (const entry of entries) {
    entry.prev = last;
    last.next = entry;
    last = entry;
  }
  return head;
}

/** For each name, the index of its previous occurrence. */
function twins(names: readonly string[]): (number | undefined)[] {
  const last = new Map<string, number>();
  return names.map((name, index) => {
    const twin = last.get(name);
    last.set(name, index);
    return twin;
  });
}

function unlink(call: Entry): void {
  for (const entry of [call, call.ret!]) {
    entry.prev!.next = entry.next;
    if (entry.next !== undefined) entry.next.prev = entry.prev;
  }
}

function relink(call: Entry): void {
  for (const entry of [call.ret!, call]) {
    entry.prev!.next = entry;
    if (entry.next !== undefined) entry.next.prev = entry;
  }
}

function show(value: unknown): string {
  return JSON.stringify(value, (_, item) => (typeof item === "bigint" ? `${item}` : item)) ?? "undefined";
}
