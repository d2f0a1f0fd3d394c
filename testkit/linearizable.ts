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
  const head = link(history);
  const unknown = history.filter(({ ret }) => ret === Number.POSITIVE_INFINITY).sort((a, b) => a.call - b.call);
  const earlierTwin = twins(unknown.map(({ input }) => model.effect?.(input) ?? show(input)));
  const total = history.length - unknown.length;
  /** Configurations reached (open known operations, state), each with the sets of unknown operations used there. */
  const seen = new Map<string, bigint[]>();
  let states = 0;
  /**
   * The choices so far. At a call: that operation. At a return that no known operation fits: the unknown one at
   * `index`.
   */
  const taken: { readonly entry: Entry; readonly index: number; readonly before: S }[] = [];
  let state = model.init();
  let used = 0n;
  let best = { placed: -1, stuckAt: -1, state: "" };

  // Unknown operations are tried last: known ones explain most of a history.
  let entry = head.next;
  let index = 0;
  let placed = 0;
  isNew(model.key(state), used);
  while (entry !== undefined) {
    if (!entry.isReturn) {
      const { input, output } = history[entry.id]!;
      const next = model.step(state, input, output);
      if (next.ok) {
        unlink(entry);
        if (isNew(model.key(next.state), used)) {
          choose(next.state);
          placed++;
          continue;
        }
        relink(entry);
      }
      entry = entry.next;
    } else if (index < unknown.length && unknown[index]!.call <= entry.time) {
      const bit = 1n << BigInt(index);
      // Of equivalent operations, only the one called first is tried: it is free whenever the others are.
      const twin = earlierTwin[index];
      if ((used & bit) === 0n && (twin === undefined || (used & (1n << BigInt(twin))) !== 0n)) {
        const next = model.step(state, unknown[index]!.input, undefined);
        if (next.ok && isNew(model.key(next.state), used | bit)) {
          choose(next.state);
          used |= bit;
          continue;
        }
      }
      index++;
    } else {
      // The operation of this return has not been placed: one of the choices was wrong.
      if (placed > best.placed) best = { placed, stuckAt: entry.id, state: model.key(state) };
      const last = taken.pop();
      if (last === undefined) return { ok: false, reason: explain() };
      state = last.before;
      if (last.entry.isReturn) {
        used ^= 1n << BigInt(last.index);
        entry = last.entry;
        index = last.index + 1;
      } else {
        relink(last.entry);
        placed--;
        entry = last.entry.next;
        index = 0;
      }
    }
  }
  return { ok: true };

  function choose(next: S): void {
    taken.push({ entry: entry!, index, before: state });
    state = next;
    entry = head.next;
    index = 0;
  }

  /**
   * Whether this configuration is new. An earlier visit that used fewer unknown operations had every option that this
   * one has. This also drops unknown operations that change nothing.
   */
  function isNew(key: string, use: bigint): boolean {
    // The calls up to the first return identify what is done: nothing called later can be.
    let place = "";
    for (let open = head.next; open !== undefined; open = open.isReturn ? undefined : open.next) place += `${open.id} `;
    place += `| ${key}`;
    const visits = seen.get(place);
    if (visits?.some((earlier) => (earlier & ~use) === 0n)) return false;
    if (++states > maxStates) throw new UndecidedError(maxStates);
    if (visits === undefined) seen.set(place, [use]);
    else visits.push(use);
    return true;
  }

  function explain(): string {
    const { call, ret, input, output } = history[best.stuckAt]!;
    return (
      `no legal order places operation ${best.stuckAt}, ${show(input)} → ${show(output)} (called ${call}, returned ` +
      `${ret}); the longest one has ${best.placed} of ${total} operations and ends in state ${best.state}`
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
