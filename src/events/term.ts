import { backoffMs } from "../base/backoff.ts";
import { errorFields, reasonOf } from "../base/reason.ts";
import type { Lease } from "../lease/lease.ts";
import { isTapeError } from "../model/errors.ts";
import { checkpointOf, checkpointText, type SinkCheckpoint, type SinkPause } from "../model/sink-checkpoint.ts";
import { retryingNote } from "../model/sink-state.ts";
import type { FeedPage } from "../store/contract/store.ts";
import { isForeign } from "../store/follow-feed.ts";
import { FollowPace } from "../store/follow-pace.ts";
import type { TermDeps } from "./deps.ts";
import { type EventContext, eventOf, restoredEvent, restoredKind, sizeOf, sourceOf } from "./event.ts";
import { type LaneCallbacks, type LaneItem, Lanes, type Refusal } from "./lanes.ts";
import { Letters, maxOpenLetters } from "./letters.ts";
import { LowWater, type Mark } from "./low-water.ts";
import { Replays } from "./replays.ts";
import type { FanoutCounts, FanoutSettings, TermStatus } from "./settings.ts";
import { SubjectCache } from "./subjects.ts";

const maxBytes = 32 * 1024 * 1024;
const saveEveryMs = 250;
const pageEvents = 1_000;
const storeBackoff = { baseMs: 500, capMs: 30_000 };
const idlePollMs = 1_000;

/** One term of a fan-out: reads the feed from the checkpoint, sends events in lanes, and moves the checkpoint behind them. */
export class FanoutTerm {
  readonly #deps: TermDeps;
  readonly #settings: FanoutSettings;
  readonly #lease: Lease;
  readonly #counts: FanoutCounts;
  readonly #status: TermStatus;
  /** Aborts when the term is over: lost, paused, or drained. */
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;
  #context!: EventContext;
  #water!: LowWater;
  #lanes!: Lanes;
  #replays!: Replays;
  #subjects: SubjectCache;
  /** The store's epoch in the checkpoint. Behind the store's own until the restore is announced. */
  #storeEpoch = 0;
  #saved: string | null | undefined;
  /** Records were passed or events settled since the checkpoint was written. */
  #moved = 0;
  #retrying = 0;
  #letters!: Letters;
  #wakeSaver: () => void = () => {};

  constructor(deps: TermDeps, settings: FanoutSettings, lease: Lease, counts: FanoutCounts, status: TermStatus) {
    this.#deps = deps;
    this.#settings = settings;
    this.#lease = lease;
    this.#counts = counts;
    this.#status = status;
    this.#signal = AbortSignal.any([lease.abortSignal, this.#over.signal]);
    this.#subjects = new SubjectCache(deps.store.read, deps.tenant);
  }

  /** Milliseconds since the oldest unsettled event was written. */
  get lagMs(): number {
    const oldest = this.#water?.oldestAt;
    return oldest === undefined ? 0 : Math.max(0, this.#deps.clock.wall() - oldest);
  }

  get inFlight(): number {
    return this.#lanes?.count ?? 0;
  }

  /** Works until `stop` aborts or the lease is lost. Then everything that was received is behind the checkpoint. */
  async run(stop: AbortSignal): Promise<void> {
    const checkpoint = await this.#begin(stop);
    if (checkpoint === undefined) return;
    if (checkpoint.paused !== undefined) return this.#rest(checkpoint.paused, stop);
    this.#status.state = "running";
    const unsubscribe = this.#deps.store.onWake((wake) => {
      if (wake.of === "any" || (wake.of === "journal" && wake.journal === this.#lease.fence.journal)) {
        void this.#checkLease();
      }
    });
    const saving = this.#saveLoop();
    const replaying = this.#replays.follow(this.#signal);
    try {
      await this.#announce(checkpoint);
      await this.#read(stop);
      await this.#drain();
    } finally {
      unsubscribe();
      this.#over.abort();
      await Promise.all([saving, replaying]);
    }
    const { paused } = this.#status;
    if (paused === undefined || this.#lease.abortSignal.aborted) return;
    await this.#save(paused);
    await this.#rest(paused, stop);
  }

  /** The checkpoint from which this term starts. A first start leaves one before it reads anything. */
  async #begin(stop: AbortSignal): Promise<SinkCheckpoint | undefined> {
    const { store, tenant, clock, random } = this.#deps;
    const { sink, lanes, payload, sendMs } = this.#settings;
    const { token } = this.#lease;
    const settings = await this.#retried(() => store.read.settings(), stop);
    if (settings === undefined) return undefined;
    const source = sourceOf(String(settings.facts.storeId ?? "store"), tenant);
    this.#context = { source, tenant, storeEpoch: settings.epoch, token, payload };
    const found = this.#found(settings.epoch);
    const checkpoint = found ?? (await this.#retried(() => this.#first(settings.epoch), stop));
    if (checkpoint === undefined) return undefined;
    this.#storeEpoch = checkpoint.epoch;
    this.#saved = checkpoint.cursor;
    this.#water = new LowWater({ cursor: checkpoint.cursor, at: checkpoint.at });
    const callbacks = this.#callbacks();
    this.#lanes = new Lanes({ sink, lanes, token, signal: this.#signal, clock, random, callbacks, sendMs });
    const replay = (item: LaneItem, hash: number): void => this.#lanes.add(hash, item);
    this.#replays = new Replays(this.#deps, this.#settings.name, this.#context, this.#subjects, replay);
    this.#letters = new Letters(this.#deps, this.#settings.name, this.#lease.fence, (call) =>
      this.#retried(call, this.#signal),
    );
    await this.#letters.count();
    return checkpoint;
  }

  #found(epoch: number): SinkCheckpoint | undefined {
    try {
      return checkpointOf(this.#lease.term.checkpoint);
    } catch (error) {
      // Not from the start, and not from now: an operator decides where it continues.
      const paused = { by: this.#settings.name, reason: reasonOf(error), at: this.#deps.clock.wall() };
      return { cursor: null, at: 0, epoch, paused };
    }
  }

  /** "Now" is decided once: a crash after this cannot move it past records that were not sent. */
  async #first(epoch: number): Promise<SinkCheckpoint> {
    const { store, tenant, clock } = this.#deps;
    const cursor = this.#settings.from === "now" ? await store.read.frontier(tenant) : null;
    const checkpoint = { cursor, at: clock.wall(), epoch };
    await store.fenced.checkpoint(this.#lease.fence, checkpointText(checkpoint));
    return checkpoint;
  }

  /** After a restore, everything since the backup is sent again, and may differ from what was sent before. */
  async #announce({ epoch, cursor, at }: SinkCheckpoint): Promise<void> {
    const { clock, log } = this.#deps;
    if (epoch === this.#context.storeEpoch) return;
    log("warn", "sink.store_restored", { sink: this.#settings.name, from: epoch, to: this.#context.storeEpoch });
    const event = restoredEvent(this.#context, clock.wall());
    const source = { journal: 1, seq: this.#context.storeEpoch, inbox: false, kind: restoredKind };
    this.#lanes.add(0, { event, bytes: sizeOf(event, "values"), source, pending: this.#water.add({ cursor, at }) });
    await this.#lanes.settled();
    if (this.#signal.aborted) return;
    this.#storeEpoch = this.#context.storeEpoch;
    this.#saved = undefined;
    await this.#save();
  }

  async #read(stop: AbortSignal): Promise<void> {
    const { store, tenant, clock } = this.#deps;
    const ended = AbortSignal.any([this.#signal, stop]);
    const pace = new FollowPace(clock, idlePollMs);
    let { cursor } = this.#water.mark;
    let pending = false;
    let wakeUp = (): void => {};
    ended.addEventListener("abort", () => this.#lanes.check(), { once: true });
    const unsubscribe = store.onWake((wake) => {
      if (isForeign(wake, tenant)) return;
      pending = true;
      wakeUp();
    });
    try {
      while (!ended.aborted) {
        await this.#lanes.room(() => ended.aborted || this.#hasRoom());
        if (ended.aborted) return;
        pending = false;
        const page = await this.#retried(() => this.#page(cursor), ended);
        if (page === undefined) return;
        cursor = page.cursor;
        if (page.records.length > 0) pace.came();
        if (page.records.length > 0 || page.more === true || pending) {
          await clock.sleep(0, ended); // yields to other tasks: an embedded store responds in the same tick
          continue;
        }
        const hint = new AbortController();
        wakeUp = () => hint.abort();
        await clock.sleep(pace.next(), AbortSignal.any([ended, hint.signal]));
      }
    } finally {
      unsubscribe();
    }
  }

  /** How many more events may be read. */
  get #free(): number {
    return this.#settings.window - this.#water.ahead;
  }

  #hasRoom(): boolean {
    return this.#free >= pageOf(this.#settings.window) && this.#lanes.bytes < maxBytes;
  }

  /** Reads one page and puts its events into their lanes; the others are passed. */
  async #page(cursor: string | null): Promise<FeedPage> {
    const { store, tenant } = this.#deps;
    const { matcher, payload } = this.#settings;
    const page = await store.read.feed(cursor ?? undefined, this.#free, tenant);
    const wanted = page.records.filter((record) => matcher.kind(record));
    await this.#subjects.load(wanted.map(({ journal }) => journal));
    let next = 0;
    for (const record of page.records) {
      const mark: Mark = { cursor: record.cursor, at: record.at };
      const known = record === wanted[next] ? this.#subjects.of(record.journal) : undefined;
      if (known !== undefined) next++;
      if (known === undefined || !matcher.subject(known.subject)) {
        this.#water.pass(mark);
        this.#moved++;
        continue;
      }
      const event = eventOf(record, known.subject, known.trace, this.#context);
      const { journal, seq, kind } = record;
      const source = { journal, seq, inbox: record.in === "inbox", kind };
      const bytes = sizeOf(event, payload);
      this.#lanes.add(known.hash, { event, bytes, source, pending: this.#water.add(mark) });
    }
    this.#water.pass({ cursor: page.cursor, at: this.#water.mark.at });
    return page;
  }

  #callbacks(): LaneCallbacks {
    const { log, clock } = this.#deps;
    const { name, sink } = this.#settings;
    return {
      assert: () => this.#lease.assert(),
      delivered: (item) => {
        this.#counts.delivered++;
        if (item.pending === undefined) return this.#letters.sent(item);
        this.#water.settle(item.pending);
        this.#settled();
        return undefined;
      },
      refused: (item, refusal) => this.#deadLetter(item, refusal),
      retrying: (attempt, delayMs, error) => {
        this.#counts.retries++;
        if (attempt === 1) this.#retrying++;
        if (this.#status.paused === undefined) this.#status.state = "retrying";
        this.#status.lastError = reasonOf(error);
        this.#lease.progress(`${retryingNote}${reasonOf(error)}`);
        const fields = { sink: name, label: sink.label, attempt, delayMs: Math.round(delayMs), ...errorFields(error) };
        log("warn", "sink.retrying", fields);
      },
      recovered: () => {
        this.#retrying = Math.max(0, this.#retrying - 1);
        if (this.#retrying > 0 || this.#status.state !== "retrying") return;
        this.#status.state = "running";
        this.#lease.progress("delivering");
        log("info", "sink.recovered", { sink: name, label: sink.label });
      },
      pause: (reason) => this.#pause({ by: name, reason: reasonOf(reason), at: clock.wall() }),
      failed: (error) => {
        log("warn", "sink.lane_failed", { sink: name, ...errorFields(error) });
        this.#over.abort(error);
      },
    };
  }

  #settled(): void {
    this.#moved++;
    if (this.#water.unsaved >= this.#settings.window / 2) this.#wakeSaver();
  }

  /** Stored before its event counts as settled: a crash in between meets the event again and writes the same letter. */
  async #deadLetter(item: LaneItem, refusal: Refusal): Promise<void> {
    const stored = await this.#letters.store(item, refusal);
    if (stored === undefined) return this.#over.abort(); // its event is not settled
    this.#counts.deadLetters++;
    if (item.pending !== undefined) this.#water.settle(item.pending);
    this.#settled();
    this.#replays.expect();
    if (!(await this.#letters.tooMany())) return;
    const reason = `${maxOpenLetters} dead letters are open`;
    this.#pause({ by: this.#settings.name, reason, at: this.#deps.clock.wall() });
  }

  #pause(paused: SinkPause): void {
    if (this.#status.paused !== undefined) return;
    this.#status.paused = paused;
    this.#over.abort();
  }

  /** Waits for what was read, at most until the bound; the rest is sent again by the next holder. */
  async #drain(): Promise<void> {
    const { clock } = this.#deps;
    const done = new AbortController();
    const bound = AbortSignal.any([done.signal, this.#signal]);
    await Promise.race([this.#lanes.settled(), clock.sleep(this.#settings.drainMs, bound)]);
    done.abort();
    await this.#save();
  }

  async #saveLoop(): Promise<void> {
    const { clock } = this.#deps;
    while (!this.#signal.aborted) {
      const hint = new AbortController();
      this.#wakeSaver = () => {
        this.#wakeSaver = () => {}; // each further abort would make an error that has no reader
        hint.abort();
      };
      await clock.sleep(saveEveryMs, AbortSignal.any([this.#signal, hint.signal]));
      if (!this.#signal.aborted) await this.#save();
    }
  }

  /** Moves the checkpoint behind what is settled. Cursors differ at each poll: only records that were passed count. */
  async #save(paused?: SinkPause): Promise<void> {
    const { mark, behind } = this.#water;
    if (paused === undefined && (this.#moved === 0 || mark.cursor === this.#saved)) return;
    const moved = this.#moved;
    this.#moved = 0;
    const text = checkpointText({ ...mark, epoch: this.#storeEpoch, ...(paused && { paused }) });
    try {
      await this.#deps.store.fenced.checkpoint(this.#lease.fence, text);
      this.#saved = mark.cursor;
      this.#water.saved(behind);
      this.#lanes.check();
      this.#lease.progress();
    } catch (error) {
      this.#moved += moved;
      this.#deps.log("warn", "sink.checkpoint_failed", { sink: this.#settings.name, ...errorFields(error) });
      if (isTapeError(error, "TAPE_FENCED")) await this.#lease.renew(); // which ends the term
    }
  }

  /** A paused sink keeps its lease and sends nothing, until an operator takes the lease over to resume it. */
  async #rest(paused: SinkPause, stop: AbortSignal): Promise<void> {
    const { log, clock, store } = this.#deps;
    this.#status.state = "paused";
    this.#status.paused = paused;
    const { abortSignal } = this.#lease;
    this.#lease.progress(`paused: ${paused.reason}`);
    log("error", "sink.paused", { sink: this.#settings.name, by: paused.by, reason: paused.reason, next: resumeHint });
    const unsubscribe = store.onWake((wake) => {
      if (wake.of === "any" || ("journal" in wake && wake.journal === this.#lease.fence.journal))
        void this.#checkLease();
    });
    const ended = AbortSignal.any([abortSignal, stop]);
    while (!ended.aborted) await clock.sleep(60_000, ended);
    unsubscribe();
    this.#status.paused = undefined;
    this.#status.state = "running";
  }

  /** A hint about the own lease: an operator may have taken it over, or wants a letter sent again. */
  async #checkLease(): Promise<void> {
    const { store, tenant } = this.#deps;
    this.#replays?.check();
    const view = await store.read.lease(tenant, { journal: this.#lease.fence.journal }).catch(() => undefined);
    if (view !== undefined && view.token !== this.#lease.token) await this.#lease.renew();
  }

  /** Repeats a call that the store could not answer. undefined: the signal aborted. */
  async #retried<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    const { clock, random, log } = this.#deps;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        return await call();
      } catch (error) {
        if (isTapeError(error, "TAPE_FENCED")) {
          await this.#lease.renew();
          if (!this.#lease.abortSignal.aborted) throw error;
          return undefined;
        }
        log("warn", "sink.store_failed", { sink: this.#settings.name, attempt, ...errorFields(error) });
        await clock.sleep(backoffMs(attempt, storeBackoff, random), signal);
      }
    }
    return undefined;
  }
}

/** A page is not read for less: with small pages the store would work more than the sink. */
const pageOf = (window: number): number => Math.min(pageEvents, Math.ceil(window / 2));

const resumeHint = "Remove the cause, then run `durable-tape sink resume NAME --reason …`.";
