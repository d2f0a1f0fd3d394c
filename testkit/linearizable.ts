/**
 * Is there one order of the operations, each taking effect somewhere between its call and its return, that a
 * sequential model explains? Wing & Gong's search with Lowe's cache of configurations (what is done, state reached).
 */
export interface SequentialModel<S, I, O> {
  init(): S;
  /** Whether `output` fits, and the state afterwards. An undefined output is unknown: only the effect is asked for. */
  step(state: S, input: I, output: O | undefined): { readonly ok: boolean; readonly state: S };
  /** Equal keys must mean equal states. */
  key(state: S): string;
  /** Inputs of equal effect must change every state alike; unless told, only equal inputs do. Saves much search. */
  effect?(input: I): string;
}

export interface Operation<I, O> {
  readonly call: number;
  /**
   * Infinity: the outcome is unknown; the operation may have taken effect at any time since its call, or never. So is
   * what was still open when the recording ended: leaving it out would accuse a correct store.
   */
  readonly ret: number;
  readonly input: I;
  readonly output?: O;
}

export type Verdict = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** The search was given up: neither "yes" nor "no". A test must not take it for either, hence an exception. */
export class UndecidedError extends Error {
  constructor(states: number) {
    super(`undecided after ${states} states; check a shorter history, or one key at a time`);
    this.name = "UndecidedError";
  }
}

/** Some 100 MB of cache. A healthy history of 1000 operations needs a few thousand. */
const defaultMaxStates = 1_000_000;

/**
 * ```ts
 * const verdict = checkLinearizable(leaseModel, history);
 * if (!verdict.ok) throw new Error(verdict.reason);
 * ```
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
  /** Places reached (the known operations still open, the state), each with the sets of unknown ones used up there. */
  const seen = new Map<string, bigint[]>();
  let states = 0;
  /** The choices so far. At a call: that operation. At a return, where nothing known fits: the unknown one at `index`. */
  const taken: { readonly entry: Entry; readonly index: number; readonly before: S }[] = [];
  let state = model.init();
  let used = 0n;
  let best = { placed: -1, stuckAt: -1, state: "" };

  // Unknown operations come last among the choices: a history is mostly explained by what is known.
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
      // Of those that would do the same, only the one called first is tried: it is free whenever the others are.
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
      // A return whose operation has found no place: one of the choices was wrong.
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
   * Whether this place is worth a visit: who was here with more unknown operations to spare had every chance of ours.
   * This also drops unknown operations that change nothing.
   */
  function isNew(key: string, use: bigint): boolean {
    // The calls before the first return, and it, tell what is done: nothing that was called later can be.
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

/** The calls and returns of known operations in time order, so linked that one is taken out and put back in O(1). */
interface Entry {
  readonly id: number;
  readonly time: number;
  readonly isReturn: boolean;
  /** Of a call: its return. */
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
  // At equal times calls come first: operations that only touch count as concurrent, which never accuses wrongly.
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

/** For each name the index of its last occurrence before. */
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
