import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Page, Store, StoredValue } from "../store/contract/store.ts";
import { emptyState, hasEnded, type LogEvent, type NewEvent, type RunState } from "./entities.ts";
import { addEvent } from "./fold.ts";
import { eventIdOf } from "./ids.ts";
import { KeyedTurns } from "./keyed-turns.ts";
import { numberIn, type WorldKeys } from "./keys.ts";
import type { Decision } from "./rules.ts";

/** What the parts of a world share. */
export interface WorldDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly keys: WorldKeys;
}

/** The version of the Workflow protocol that this World implements. A runtime of another version refuses it. */
export const specVersion = 5;

/** Payloads of runs whose state is kept in memory; what is beyond is read again when it is needed. */
const maxCachedBytes = 32 * 1024 * 1024;
const maxCachedRuns = 1_000;
/** An entry has at most two events: those that create what they start. */
export const maxEntryEvents = 2;
/** Tries of one append. Each conflict means that another process has appended to the same run. */
const maxTries = 1_000;

/** What came of an append. */
export interface AppendOutcome {
  /** Nothing if all was so already. */
  readonly events: readonly LogEvent[];
  readonly stepCreated: boolean;
  readonly state: RunState;
}

/**
 * The logs of runs. A log is a sequence of values, each one event or two, under keys that are numbered without a gap. An
 * append creates the value under the next number, and fails if there is one: so the events of a run have one order, and
 * each was decided on in view of all events before it, however many processes write.
 *
 * The state of a run is the fold of its log. A copy in memory may be behind. An event that was accepted by a copy that is
 * behind finds its number taken; a refusal is only final if the copy was read again first.
 */
export class RunLogs {
  readonly #deps: WorldDeps;
  readonly #turns = new KeyedTurns();
  /** By run, the longest unused first. */
  readonly #cached = new Map<string, RunState>();
  #cachedBytes = 0;

  constructor(deps: WorldDeps) {
    this.#deps = deps;
  }

  /** The current state; it stays as it is until the next call for this run. */
  state(run: string): Promise<RunState> {
    return this.#turns.take(run, async () => {
      const state = this.#take(run);
      await this.#catchUp(run, state);
      this.#keep(run, state);
      return state;
    });
  }

  /** Appends what `decide` makes of the current state; `prepare` is called with the events before they are stored. */
  append(
    run: string,
    decide: (state: RunState) => Decision,
    prepare: (events: readonly NewEvent[]) => Promise<void>,
  ): Promise<AppendOutcome> {
    return this.#turns.take(run, async () => {
      const state = this.#take(run);
      try {
        return await this.#append(run, state, decide, prepare);
      } catch (error) {
        if (isTapeError(error, "TAPE_JOURNAL_DAMAGED")) state.run = undefined; // half an entry is in it: not to be kept
        throw error;
      } finally {
        this.#keep(run, state);
      }
    });
  }

  /** A page of entries' events from a number on, or below it in descending order; `more`: there are further ones. */
  async events(
    run: string,
    {
      from,
      limit,
      order,
    }: { readonly from: number | undefined; readonly limit: number; readonly order: "asc" | "desc" },
  ): Promise<{ readonly events: readonly (readonly [number, LogEvent])[]; readonly more: boolean }> {
    const { store, tenant, keys } = this.#deps;
    const isAsc = order === "asc";
    const first = isAsc ? (from ?? 0) - maxEntryEvents : from;
    const above = first === undefined || first < 0 ? undefined : keys.event(run, first);
    const page = await store.read.values(tenant, keys.events(run), limit + 1, above, order);
    const all = page.flatMap((entry) => {
      const numbered = numberedEvents(entry);
      return isAsc ? numbered : numbered.reverse();
    });
    const found = all.filter(([number]) => from === undefined || (isAsc ? number >= from : number < from));
    return { events: found.slice(0, limit), more: found.length > limit || page.more === true };
  }

  async #append(
    run: string,
    state: RunState,
    decide: (state: RunState) => Decision,
    prepare: (events: readonly NewEvent[]) => Promise<void>,
  ): Promise<AppendOutcome> {
    for (let tries = 1, isFresh = false; ; tries++) {
      const decision = attempt(state, decide);
      const isFinal = "events" in decision && decision.events.length > 0;
      if (!isFinal && !isFresh) {
        await this.#catchUp(run, state);
        isFresh = true;
        continue;
      }
      if ("refusal" in decision) throw decision.refusal;
      const { stepCreated = false } = decision;
      if (!isFinal) return { events: [], stepCreated, state };
      await prepare(decision.events);
      const events = await this.#put(run, state, decision.events, tries);
      if (events !== undefined) return { events, stepCreated, state };
      await this.#catchUp(run, state);
      isFresh = true;
    }
  }

  /** Stores the events as the next ones; undefined: others are stored there. */
  async #put(
    run: string,
    state: RunState,
    wanted: readonly NewEvent[],
    tries: number,
  ): Promise<LogEvent[] | undefined> {
    const { store, tenant, clock, random, keys } = this.#deps;
    this.#checkRoom(run, state);
    // The time in an id never falls along the log, also if the clocks of processes differ.
    const ms = Math.max(clock.wall(), state.lastMs);
    const events = wanted.map(
      (event, k): LogEvent => ({
        ...{ specVersion, ...event, runId: run, createdAt: new Date(ms) },
        eventId: eventIdOf(ms, state.next + k, random),
      }),
    );
    const key = keys.event(run, state.next);
    try {
      await store.intake.putValue(tenant, key, events, "must_create");
    } catch (error) {
      if (!isTapeError(error, "TAPE_VERSION_CONFLICT") || tries >= maxTries) throw error;
      return undefined;
    }
    add(state, { key, value: events });
    return events;
  }

  #checkRoom(run: string, { next }: RunState): void {
    const max = this.#deps.store.limits.journalRecords;
    if (next + maxEntryEvents <= max) return;
    const message = `${run} has ${next} events; limits.journalRecords allows ${max}: continue in another run`;
    throw new TapeError("TAPE_TOO_LARGE", message, { run, limit: "journalRecords" });
  }

  /** Reads the entries that are new. */
  async #catchUp(run: string, state: RunState): Promise<void> {
    const { store, tenant, keys } = this.#deps;
    let page: Page<StoredValue>;
    do {
      page = await store.read.values(tenant, keys.events(run), undefined, state.lastKey, "asc");
      for (const entry of page) add(state, entry);
    } while (page.more === true);
  }

  #take(run: string): RunState {
    const state = this.#cached.get(run);
    if (state === undefined) return emptyState();
    this.#cached.delete(run);
    this.#cachedBytes -= state.bytes;
    return state;
  }

  /** Runs that have ended are read rarely, and those that do not exist are not remembered. */
  #keep(run: string, state: RunState): void {
    if (state.run === undefined || hasEnded(state.run) || state.bytes > maxCachedBytes) return;
    this.#cached.set(run, state);
    this.#cachedBytes += state.bytes;
    for (const [oldest, { bytes }] of this.#cached) {
      if (this.#cachedBytes <= maxCachedBytes && this.#cached.size <= maxCachedRuns) return;
      this.#cached.delete(oldest);
      this.#cachedBytes -= bytes;
    }
  }
}

function numberedEvents({ key, value }: StoredValue): [number, LogEvent][] {
  const first = numberIn(key);
  return (value as LogEvent[]).map((event, k) => [first + k, event]);
}

function add(state: RunState, { key, value }: Pick<StoredValue, "key" | "value">): void {
  if (numberIn(key) !== state.next) {
    const message = `event ${state.next} is missing: after it comes ${numberIn(key)} (${key})`;
    throw new TapeError("TAPE_JOURNAL_DAMAGED", message, { key });
  }
  for (const event of value as LogEvent[]) {
    addEvent(state, event);
    state.lastMs = event.createdAt.getTime();
  }
  state.lastKey = key;
}

/** A refusal is a result here: it may come from a copy that is behind. */
function attempt(state: RunState, decide: (state: RunState) => Decision): Decision | { readonly refusal: unknown } {
  try {
    return decide(state);
  } catch (refusal) {
    return { refusal };
  }
}
