import { errorFields } from "../base/reason.ts";
import type { DeadLetter } from "../model/dead-letter.ts";
import type { TermDeps } from "./deps.ts";
import {
  type EventContext,
  type EventSource,
  eventIdOf,
  eventOf,
  restoredEvent,
  restoredKind,
  sizeOf,
} from "./event.ts";
import type { LaneItem } from "./lanes.ts";
import type { SubjectCache } from "./subjects.ts";

/** A wake hint may be lost. */
const pollMs = 5_000;

/** Dead letters that an operator wants sent again: they join the lanes of their runs, with the same ids. */
export class Replays {
  readonly #deps: TermDeps;
  readonly #sink: string;
  readonly #context: EventContext;
  readonly #subjects: SubjectCache;
  readonly #replay: (item: LaneItem, hash: number) => void;
  readonly #underWay = new Set<string>();
  /** Only a sink with dead letters polls for replays. */
  #expected = true;
  #wakeUp: () => void = () => {};

  constructor(
    deps: TermDeps,
    sink: string,
    context: EventContext,
    subjects: SubjectCache,
    replay: (item: LaneItem, hash: number) => void,
  ) {
    this.#deps = deps;
    this.#sink = sink;
    this.#context = context;
    this.#subjects = subjects;
    this.#replay = replay;
  }

  /** There is a dead letter. */
  expect(): void {
    this.#expected = true;
  }

  /** Checks now, after a wake hint. */
  check(): void {
    this.#wakeUp();
  }

  async follow(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      try {
        if (this.#expected) await this.#find(signal);
      } catch (error) {
        log("warn", "sink.replay_failed", { sink: this.#sink, ...errorFields(error) });
      }
      const hint = new AbortController();
      this.#wakeUp = () => {
        this.#expected = true;
        hint.abort();
      };
      await clock.sleep(pollMs, AbortSignal.any([signal, hint.signal]));
    }
  }

  async #find(signal: AbortSignal): Promise<void> {
    const { store, tenant } = this.#deps;
    const letters = await store.read.deadLetters(tenant, this.#sink, { state: "REPLAY", limit: 100 });
    this.#underWay.forEach((event) => {
      if (!letters.some((letter) => letter.event === event)) this.#underWay.delete(event);
    });
    for (const letter of letters) {
      if (signal.aborted || this.#underWay.has(letter.event)) continue;
      this.#underWay.add(letter.event);
      await this.#send(letter);
    }
    if (letters.length > 0) return;
    this.#expected = (await store.read.deadLetters(tenant, this.#sink, { limit: 1 })).length > 0;
  }

  async #send(letter: DeadLetter): Promise<void> {
    const { clock, log } = this.#deps;
    const { journal, seq, inbox, kind } = letter;
    const source = { journal, seq, inbox, kind };
    if (kind === restoredKind) {
      const event = {
        ...restoredEvent({ ...this.#context, storeEpoch: seq }, clock.wall()),
        tapereplayed: true as const,
      };
      return this.#replay({ event, bytes: sizeOf(event, "values"), source }, 0);
    }
    const record = await this.#recordOf(letter);
    if (record === undefined) {
      log("error", "sink.replay_gone", { sink: this.#sink, event: letter.event, next: "Discard the dead letter." });
      return;
    }
    await this.#subjects.load([journal]);
    const { subject, trace, hash } = this.#subjects.of(journal);
    const event = { ...eventOf(record, subject, trace, this.#context), tapereplayed: true as const };
    this.#replay({ event, bytes: sizeOf(event, this.#context.payload), source }, hash);
  }

  /** undefined: its run was pruned, or a restored store has another record under its number. */
  async #recordOf({ journal, seq, inbox, event }: DeadLetter): Promise<EventSource | undefined> {
    const { store, tenant } = this.#deps;
    const [found] = await store.read.journal(tenant, { journal }, { from: seq, limit: 1, inbox });
    if (found === undefined || found.seq !== seq) return undefined;
    const record: EventSource = { ...found, journal, in: inbox ? "inbox" : "journal" };
    return eventIdOf(record) === event ? record : undefined;
  }
}
