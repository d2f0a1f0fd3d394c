import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { reasonOf } from "../base/reason.ts";
import { stuckError } from "../engine/drive/stuck.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import { readable } from "../model/payloads.ts";
import { type GateDefinition, isReplyGate, type ReplyGate } from "../sdk/gate.ts";
import { validate } from "../sdk/schema.ts";
import { assertKnownKeys, assertName, durationOrThrow } from "../sdk/validate.ts";
import type { Reply, RunProgress, StartSignal, Store } from "../store/contract/store.ts";
import { concernsJournal, follow, followPublished } from "../store/follow.ts";
import { type SignalOptions, type SignalToStart, withinOf } from "./options.ts";

/** How to ask a run: under which key, and how long to wait. */
export interface AskOptions {
  /** Asking again with the same key sends no second request and gets the same reply, however often and however late. */
  readonly key?: string;
  /** After this time the asker gets TAPE_NO_REPLY; the run keeps the request. Default: it waits for the end of the run. */
  readonly timeout?: Duration;
  /** The call that an approval is bound to, as the open gate shows it. */
  readonly binds?: string;
  /** The name of the sender, for gates with approvers. */
  readonly by?: string;
  readonly signal?: AbortSignal;
}

interface TalkDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** Requests to runs, and what runs publish, for one app. */
export class Talk {
  readonly #deps: TalkDeps;

  constructor(deps: TalkDeps) {
    this.#deps = deps;
  }

  async signal<T>(run: string, gate: GateDefinition<T>, value: T, options: SignalOptions): Promise<void> {
    const { store, tenant } = this.#deps;
    assertKnownKeys("signal", options, ["key", "binds", "mustMatch", "by", "transaction"]);
    assertName("signal: the gate", gate?.name);
    const { binds, mustMatch, transaction, ...rest } = options;
    if (mustMatch !== undefined && typeof mustMatch !== "boolean")
      throw new TapeError("TAPE_BAD_INPUT", "signal: mustMatch is true or false", { field: "mustMatch" });
    const within = transaction === undefined ? undefined : withinOf(store);
    await assertValue(gate, value);
    const signal = { name: gate.name, value, ...rest, ...defined({ binds }), ...(mustMatch && { mustMatch }) };
    if (within === undefined) await store.intake.signal(tenant, run, signal);
    else await within.signal(transaction, tenant, run, signal);
  }

  async ask<T, R>(run: string, gate: ReplyGate<T, R>, value: T, options: AskOptions = {}): Promise<R> {
    assertKnownKeys("ask", options, ["key", "timeout", "binds", "by", "signal"]);
    if (!isReplyGate(gate)) {
      const { name } = (gate ?? {}) as Partial<GateDefinition<T>>;
      const message = `ask: gate ${name} sends no replies: define it with { reply: true }`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: "gate" });
    }
    const { timeout, signal, ...rest } = options;
    const timeoutMs = timeout === undefined ? undefined : durationOrThrow("ask", "timeout", timeout);
    await assertValue(gate, value);
    signal?.throwIfAborted();
    const { store, tenant } = this.#deps;
    const ask = { name: gate.name, value, ...defined(rest), asks: true as const };
    const { n } = await store.intake.signal(tenant, run, ask).catch(async (error: unknown) => {
      if (!isTapeError(error, "TAPE_RUN_ENDED")) throw error;
      throw endedError(await this.#progress(run));
    });
    return outcomeOf(run, gate.name, await this.#reply(run, gate.name, n, timeoutMs, signal)) as R;
  }

  async published<T>(run: string, name: string): Promise<T | undefined> {
    const { store, tenant } = this.#deps;
    const [found] = await store.read.published(tenant, run, { name });
    return readable(found?.value, { run, name }) as T | undefined;
  }

  async *watch<T>(
    run: string,
    journal: number,
    name: string,
    options: { readonly signal?: AbortSignal },
  ): AsyncGenerator<T> {
    assertName("watch: the value", name);
    assertKnownKeys("watch", options, ["signal"]);
    const { signal = new AbortController().signal } = options;
    const { store, clock, tenant } = this.#deps;
    const pages = followPublished({ store, clock, signal, tenant, run, journal, name, after: 0 });
    for await (const page of pages) for (const { value } of page) yield readable(value, { run, name }) as T;
  }

  /** The signals of a start, checked and each with a key: a lost response must not send one twice. */
  async startSignals(given: readonly SignalToStart[]): Promise<StartSignal[]> {
    if (!Array.isArray(given)) throw new TapeError("TAPE_BAD_INPUT", "start: signals is a list", { field: "signals" });
    const { random, clock } = this.#deps;
    const signals: StartSignal[] = [];
    for (const signal of given) {
      assertKnownKeys("start: a signal", signal, ["gate", "value", "key", "binds", "by"]);
      const { gate, value, key = random.uuid(clock.wall()), binds, by } = signal;
      assertName("start: the gate of a signal", gate?.name);
      await assertValue(gate, value);
      signals.push({ name: gate.name, value, key, ...defined({ binds, by }) });
    }
    return signals;
  }

  /** Waits for the reply to a note: until it is there, the time is over, or the run has ended without one. */
  async #reply(
    run: string,
    gate: string,
    n: number,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Reply> {
    const { store, clock, tenant } = this.#deps;
    const read = () => store.read.reply(tenant, run, n);
    let reply: Reply | undefined;
    let journal: number | undefined;
    const late = new AbortController();
    const cancel = timeoutMs === undefined ? () => {} : clock.after(timeoutMs, () => late.abort());
    const checks = follow({
      ...{ store, clock },
      concerns: (wake) => journal === undefined || concernsJournal(journal)(wake),
      signal: signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]),
      page: async () => {
        reply = await read();
        if (reply !== undefined) return "end";
        const progress = await this.#progress(run);
        journal = progress.journal;
        if (progress.status === "STUCK" && progress.idle) throw await stuckError(store, tenant, run);
        if (!progress.ended) return [];
        reply = await read(); // it may have been sent with the end
        if (reply === undefined) throw endedError(progress);
        return "end";
      },
    });
    try {
      for await (const _ of checks);
    } finally {
      cancel();
    }
    if (reply !== undefined) return reply;
    signal?.throwIfAborted();
    const message = `run ${run} has not answered the request to ${gate} within ${timeoutMs} ms`;
    throw new TapeError("TAPE_NO_REPLY", message, { run, gate, n });
  }

  async #progress(run: string): Promise<RunProgress> {
    const { store, tenant } = this.#deps;
    const [progress] = await store.read.progress(tenant, [run]);
    if (progress === undefined) throw notFound("run", run);
    return progress;
  }
}

async function assertValue<T>(gate: GateDefinition<T>, value: unknown): Promise<void> {
  const checked = await validate(gate.schema, value);
  if ("value" in checked) return;
  throw new TapeError("TAPE_BAD_GATE_VALUE", `${gate.name}: ${checked.fault}`, { gate: gate.name });
}

function endedError({ id: run, status, outcome }: RunProgress): TapeError {
  const message = `run ${run} ended as ${status} and has not answered the request`;
  return new TapeError("TAPE_RUN_ENDED", message, { run, status, outcome }, outcome);
}

function outcomeOf(run: string, gate: string, { n, value, error, refused }: Reply): unknown {
  if (refused !== undefined) throw new TapeError("TAPE_BAD_GATE_VALUE", `${gate}: ${refused}`, { gate, run, n });
  readable(error ?? value, { run, gate, n });
  if (error === undefined) return value;
  const message = `run ${run} rejected the request to ${gate}: ${reasonOf(error)}`;
  throw new TapeError("TAPE_ASK_REJECTED", message, { run, gate, n }, error);
}
