import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { JournalRecord } from "../model/records.ts";
import { emitted } from "../sdk/stream.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import type { Chunk, Store, WakeHint } from "../store/contract/store.ts";
import { follow } from "../store/follow.ts";

/**
 * What a user interface shows of a run. Each event has a cursor: following again after it continues exactly there. A
 * turn is a decision; `pos` names the turn or the effect.
 */
export type RunEvent = { readonly cursor: string } & (
  | { readonly type: "turn-started" | "turn-reset"; readonly pos: number }
  | { readonly type: "text" | "reasoning"; readonly pos: number; readonly text: string }
  /** Anything else that the decision has emitted. */
  | { readonly type: "part"; readonly pos: number; readonly value: unknown }
  | {
      readonly type: "turn-ended";
      readonly pos: number;
      readonly name: string;
      readonly value?: unknown;
      readonly error?: unknown;
      readonly model?: string;
      /** What the decision notes of its request. */
      readonly request?: unknown;
      readonly usage?: Readonly<Record<string, number>>;
    }
  | { readonly type: "tool-call"; readonly pos: number; readonly name: string; readonly args: unknown }
  | {
      readonly type: "tool-result";
      readonly pos: number;
      readonly status: string;
      readonly value?: unknown;
      readonly error?: unknown;
    }
  | { readonly type: "approval-wanted"; readonly pos: number; readonly gate: string; readonly payload?: unknown }
  | { readonly type: "ended"; readonly status: string; readonly outcome?: unknown }
);

type Unplaced<E> = E extends unknown ? Omit<E, "cursor"> : never;
type NewRunEvent = Unplaced<RunEvent>;

/** Where following a run starts, and how to stop. */
export interface FollowRunOptions {
  /** The cursor of the last event that was received. Default: from the beginning of the run. */
  readonly after?: string;
  readonly signal?: AbortSignal;
}

/** The part of an app that follows runs. */
export interface RunFollower {
  /** Follows a run: its journal and its streams, merged. */
  readonly streams: { follow(run: string, options?: FollowRunOptions): AsyncGenerator<RunEvent> };
}

/**
 * Follows a run for a user interface: turns, text while it is written, tool calls, approvals. What is recorded comes
 * from the journal, what is being written from the stream of `decision.emit`. Any process that reaches the store can
 * serve it, before, during and after a crash.
 *
 * @example
 * for await (const event of followRun(app, "chat-7", { after: lastCursor })) send(event);
 */
export function followRun(app: RunFollower, run: string, options: FollowRunOptions = {}): AsyncGenerator<RunEvent> {
  return app.streams.follow(run, options);
}

interface FollowDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
}

export async function* runEvents(deps: FollowDeps, run: string, options: FollowRunOptions): AsyncGenerator<RunEvent> {
  assertKnownKeys("followRun", options, ["after", "signal"]);
  const { after, signal = new AbortController().signal } = options;
  const merged = new RunMerge(deps, run, placeOf(after));
  const { store, clock } = deps;
  const concerns = (wake: WakeHint): boolean => merged.concerns(wake);
  // A step gives no wake hint: while something comes, the journal is polled often.
  const pages = follow({ ...{ store, clock, signal, concerns }, unannounced: true, page: () => merged.page() });
  for await (const page of pages) yield* page;
  signal.throwIfAborted();
}

const cursorText = /^(\d{1,15})\.(\d{1,15})$/;

function placeOf(cursor: string | undefined): { seq: number; offset: number } {
  if (cursor === undefined) return { seq: 0, offset: 0 };
  const [, seq, offset] = cursorText.exec(cursor) ?? [];
  if (seq !== undefined && offset !== undefined) return { seq: Number(seq), offset: Number(offset) };
  throw new TapeError("TAPE_BAD_INPUT", "followRun: after is not the cursor of an event", { field: "after" });
}

/** Merges journal and stream: a decision's chunks come before its end, and after everything recorded before they began. */
class RunMerge {
  readonly #deps: FollowDeps;
  readonly #run: string;
  /** The last record that was taken, and the next offset. */
  #seq: number;
  #offset: number;
  #journal: number | undefined;
  #over = false;
  /** The run had ended when its chunks were read. */
  #ended = false;
  readonly #turns = new Set<number>();

  constructor(deps: FollowDeps, run: string, { seq, offset }: { readonly seq: number; readonly offset: number }) {
    this.#deps = deps;
    this.#run = run;
    this.#seq = seq;
    this.#offset = offset;
  }

  concerns(wake: WakeHint): boolean {
    if (wake.of === "any" || this.#journal === undefined) return true;
    if (wake.of === "stream") return wake.journals.includes(this.#journal);
    return "journal" in wake && wake.journal === this.#journal;
  }

  async page(): Promise<readonly RunEvent[] | "end"> {
    if (this.#over) return "end";
    const { store, tenant } = this.#deps;
    // Chunks first: whatever was recorded before one of them was written is then in the journal.
    let chunks = await this.#chunks();
    const shown = (chunks.at(-1)?.offset ?? this.#offset - 1) + 1;
    const records = await store.read.journal(tenant, { run: this.#run }, { from: this.#seq + 1 });
    const isTurnEnd = ({ kind }: JournalRecord): boolean => kind === "decision.made" || kind === "run.ended";
    if (records.some(isTurnEnd)) chunks = await this.#chunks(); // a result implies its chunks
    const events: RunEvent[] = [];
    for (const record of records) {
      const last = record.kind === "decision.made" ? lastOf(chunks, record.data.pos) : undefined;
      if (last !== undefined) this.#take(chunks, last + 1, events);
      if (record.kind === "run.ended") this.#take(chunks, Number.POSITIVE_INFINITY, events);
      this.#seq = record.seq;
      const event = eventOf(record);
      if (event !== undefined) events.push(this.#placed(event));
      if (record.kind === "run.ended") this.#over = true;
    }
    if (records.more !== true) this.#take(chunks, shown, events);
    const nothing = records.length === 0 && events.length === 0 && this.#ended;
    return nothing || (events.length === 0 && this.#over) ? "end" : events;
  }

  async #chunks(): Promise<readonly Chunk[]> {
    const { store, tenant } = this.#deps;
    const wanted = { run: this.#run, stream: emitted.name, from: this.#offset };
    const [page] = await store.read.chunks(tenant, [wanted]);
    if (page === undefined) {
      if (this.#journal === undefined) throw notFound("run", this.#run);
      this.#over = true; // it was pruned
      return [];
    }
    this.#journal = page.journal;
    this.#ended = page.ended && !page.more;
    return page.chunks;
  }

  /** The events of the chunks before this offset. */
  #take(chunks: readonly Chunk[], before: number, events: RunEvent[]): void {
    for (const chunk of chunks) {
      const { offset, part: pos } = chunk;
      if (offset < this.#offset || offset >= before) continue;
      if ("rewound" in chunk) {
        this.#offset = offset + 1;
        this.#turns.delete(pos);
        events.push(this.#placed({ type: "turn-reset", pos }));
        continue;
      }
      if (!this.#turns.has(pos)) events.push(this.#placed({ type: "turn-started", pos }));
      this.#turns.add(pos);
      this.#offset = offset + 1;
      events.push(this.#placed(partOf(pos, chunk.value)));
    }
  }

  #placed(event: NewRunEvent): RunEvent {
    return { ...event, cursor: `${this.#seq}.${this.#offset}` } as RunEvent;
  }
}

const lastOf = (chunks: readonly Chunk[], pos: number): number | undefined =>
  chunks.findLast(({ part }) => part === pos)?.offset;

/** Text, or a part with a type, as models emit them. */
function partOf(pos: number, value: unknown): NewRunEvent {
  if (typeof value === "string") return { type: "text", pos, text: value };
  const { type, text } = (value ?? {}) as { readonly type?: unknown; readonly text?: unknown };
  if ((type === "text" || type === "reasoning") && typeof text === "string") return { type, pos, text };
  return { type: "part", pos, value };
}

function eventOf(record: JournalRecord): NewRunEvent | undefined {
  switch (record.kind) {
    case "decision.made": {
      const { pos, name, value, error, model, request, usage } = record.data;
      return { type: "turn-ended", pos, name, ...defined({ value, error, model, request, usage }) };
    }
    case "effect.intended": {
      const { pos, name, args } = record.data;
      return { type: "tool-call", pos, name, args };
    }
    case "effect.settled": {
      const { pos, to, value, error } = record.data;
      return to === "PENDING" ? undefined : { type: "tool-result", pos, status: to, ...defined({ value, error }) };
    }
    case "effect.received": {
      const { pos, status, value, error } = record.data;
      return { type: "tool-result", pos, status, ...defined({ value, error }) };
    }
    case "gate.opened": {
      const { pos, name, payload } = record.data;
      return { type: "approval-wanted", pos, gate: name, ...defined({ payload }) };
    }
    case "run.ended": {
      const { status, outcome } = record.data;
      return { type: "ended", status, ...defined({ outcome }) };
    }
    default:
      return undefined;
  }
}
