import { defined } from "../base/defined.ts";
import { laneOf } from "../model/record-context.ts";
import type { JournalRecord, RecordData } from "../model/records.ts";
import type { Message, ModelRecord, RequestNote } from "./conversation.ts";
import { type OpenTrace, ToolTrace, textOfError, type Writable } from "./tool-trace.ts";
import type { ConversationSums, FailedAttempt, RunConversation, Turn, TurnChild, TurnGate, TurnUsage } from "./turn.ts";

/** Budgets count whole millionths. */
const million = 1_000_000;
const maxFailures = 20;
const maxReplays = 8;
const maxModels = 20;

/**
 * The conversation of a run from the records of its journal alone, in their order. The records may be those of a page:
 * then calls, gates and attempts of earlier turns are missing.
 *
 * @example
 * const { turns, sums } = rebuildConversation(await Array.fromAsync(app.journal("chat-7")));
 */
export function rebuildConversation(records: Iterable<JournalRecord>): RunConversation {
  const builder = new ConversationBuilder();
  for (const record of records) builder.add(record);
  return builder.build();
}

/** A reservation whose call is not recorded yet. */
interface Reservation {
  readonly pos: number;
  /** When its latest call started. */
  at: number;
  readonly token: bigint;
  readonly seq: number;
  /** A model call reserves a call. */
  readonly isCall: boolean;
  readonly kept: boolean;
  lost: number;
  presumed: Record<string, number>;
}

interface Term {
  readonly token: bigint;
  readonly label: string;
  readonly at: number;
}

/** Folds the records of a run into its conversation, one after the other, so that a reader need not keep them. */
export class ConversationBuilder {
  readonly #turns: Writable<Turn>[] = [];
  readonly #lanes = new Map<number, string>();
  readonly #tools = new ToolTrace(this.#lanes);
  /** Open reservations, by position. */
  readonly #reserved = new Map<number, Reservation>();
  readonly #failures = new Map<number, { name: string; failed: FailedAttempt[]; until: number }>();
  readonly #terms: Term[] = [];
  /** The latest turn of each agent in each lane, by name. */
  readonly #byName = new Map<string, Writable<Turn>>();
  /** The holder of a run that is held from its creation: its token appears from the next record on. */
  #first: Omit<Term, "token"> | undefined;
  #ended = false;

  add(record: JournalRecord): void {
    if (this.#first !== undefined && record.token > 0n) {
      if (record.kind !== "term.started") this.#terms.push({ ...this.#first, token: record.token });
      this.#first = undefined;
    }
    this.#add(record, false);
  }

  build(): RunConversation {
    const turns = [...this.#turns, ...(this.#ended ? [] : this.#openTurns())];
    for (const turn of turns) this.#ownerOf(turn);
    return { turns, sums: sumsOf(turns) };
  }

  #add(record: JournalRecord, kept: boolean): void {
    switch (record.kind) {
      case "fork.kept": {
        const { journal, seq, token, at } = record;
        for (const one of record.data.records) this.#add({ ...one, journal, seq, token, at } as JournalRecord, true);
        return;
      }
      case "run.created": {
        const { holder } = record.data;
        if (holder !== undefined) this.#first = { label: holder.label, at: record.at };
        return;
      }
      case "term.started":
        if (record.data.reason !== "manual") {
          this.#terms.push({ token: record.token, label: record.data.label, at: record.at });
        }
        return;
      case "lane.opened":
        this.#lanes.set(record.data.lane, record.data.name);
        return;
      case "step.failed":
        this.#failed(record.data, record.at);
        return;
      case "decision.made":
        this.#made(record, record.data, kept);
        return;
      case "run.ended":
        this.#ended = true;
        return;
      case "budget.reserved":
      case "budget.presumed":
      case "budget.charged":
        this.#budget(record, kept);
        return;
      default: {
        const beside = this.#tools.add(record);
        if (beside !== undefined) this.#beside(beside);
      }
    }
  }

  #failed({ pos, name, attempt, error, delayMs }: RecordData<"step.failed">, at: number): void {
    const { failed } = this.#failures.get(pos) ?? { failed: [] };
    const one: FailedAttempt = { attempt, at, error: textOfError(error) };
    this.#failures.set(pos, { name, failed: [...failed, one].slice(-maxFailures), until: at + delayMs });
  }

  #budget(
    record: Extract<JournalRecord, { kind: "budget.reserved" | "budget.presumed" | "budget.charged" }>,
    kept: boolean,
  ): void {
    const { at, token, seq } = record;
    const { pos } = record.data;
    if (record.kind === "budget.charged") {
      this.#reserved.delete(record.data.reservation ?? pos);
    } else if (record.kind === "budget.reserved") {
      const isCall = Object.hasOwn(record.data.amounts, "calls");
      this.#reserved.set(pos, { pos, at, token, seq, isCall, kept, lost: 0, presumed: {} });
    } else {
      const open = this.#reserved.get(pos);
      if (open === undefined) return;
      open.lost++;
      open.at = at;
      add(open.presumed, record.data.amounts, million);
    }
  }

  /** The reservation of the call at this position: the one just before it, otherwise the first open one of its lane. */
  #reservationOf(pos: number): Reservation | undefined {
    const before = this.#reserved.get(pos - 1);
    if (before !== undefined) return before;
    for (const open of this.#reserved.values()) {
      if (open.pos < pos && laneOf(open.pos) === laneOf(pos) && (open.isCall || open.kept)) return open;
    }
    return undefined;
  }

  #made(record: JournalRecord, data: RecordData<"decision.made">, kept: boolean): void {
    const { pos, name, model, usage, error } = data;
    const request = requestOf(data.request);
    const answer = answerOf(data.value);
    const reservation = this.#reservationOf(pos);
    if (reservation !== undefined) this.#reserved.delete(reservation.pos);
    const turn: Writable<Turn> = {
      ...this.#callOf(pos, name, record, reservation),
      ...defined({ model, ...request.notes }),
      ...{ messages: request.messages, before: request.before, at: record.at },
      ...(answer !== undefined && { answer: answer.message, ...defined({ finish: answer.finish }) }),
      ...(error !== undefined && { error: textOfError(error) }),
      ...(answer?.refused !== undefined && { error: answer.refused }),
      ...(usage !== undefined && { usage: usageOf(usage) }),
      ...(kept && { kept: true as const }),
    };
    turn.attempts++;
    if (turn.startedAt !== undefined && !kept) turn.latencyMs = Math.max(0, record.at - turn.startedAt);
    this.#tools.answered(
      pos,
      request.messages.flatMap(({ parts }) => parts),
    );
    turn.calls = this.#tools.requested(pos, pos, answer?.message.parts ?? []);
    for (const earlier of request.changed) {
      const changed = this.#byName.get(`${turn.lane} ${earlier}`);
      if (changed !== undefined) changed.changed = true;
    }
    this.#byName.set(`${turn.lane} ${name}`, turn);
    this.#turns.push(turn);
  }

  /** What a call has before it is recorded. */
  #callOf(
    pos: number,
    name: string | undefined,
    record: Pick<Reservation, "seq" | "token" | "at">,
    reservation?: Reservation,
  ) {
    const { failed, until } = this.#failures.get(pos) ?? { failed: [], until: 0 };
    const termAt = this.#terms.findLast(({ token }) => token === record.token)?.at ?? 0;
    const startedAt = reservation === undefined ? undefined : Math.max(reservation.at, termAt, until);
    const lost = reservation?.lost ?? 0;
    const under = this.#tools.callOfLane(pos);
    return {
      ...{ pos, seq: record.seq, lane: this.#lanes.get(laneOf(pos)) ?? "" },
      agent: name === undefined ? "" : agentOf(name),
      ...(under !== undefined && { under: underOf(under) }),
      ...defined({ startedAt }),
      at: startedAt ?? record.at,
      ...{ messages: [] as readonly Message[], before: 0 },
      ...{ attempts: failed.length + lost, failures: failed, lost },
      ...(reservation !== undefined && lost > 0 && { presumed: reservation.presumed }),
      ...{ token: String(record.token), replayedBy: [], calls: [] },
    };
  }

  #openTurns(): Writable<Turn>[] {
    const holder = this.#terms.at(-1);
    return [...this.#reserved.values()].flatMap((open) => {
      if (!open.isCall || open.kept) return [];
      const pos = open.pos + 1;
      const lane = this.#lanes.get(laneOf(pos)) ?? "";
      const before = this.#turns.findLast((turn) => turn.lane === lane);
      const name = this.#failures.get(pos)?.name;
      const token = holder?.token ?? open.token;
      const call = this.#callOf(pos, name ?? before?.agent, { ...open, token }, open);
      return [{ ...call, open: true as const, attempts: call.attempts + 1, ...defined({ model: before?.model }) }];
    });
  }

  #beside(of: TurnGate | TurnChild): void {
    const lane = this.#lanes.get(laneOf(of.pos)) ?? "";
    const isAround = (outer: string): boolean => outer === lane || lane.startsWith(`${outer}/`);
    const turn = this.#turns.findLast((one) => isAround(one.lane));
    if (turn === undefined) return;
    if ("run" in of) turn.children = [...(turn.children ?? []), of];
    else turn.gates = [...(turn.gates ?? []), of];
  }

  #ownerOf(turn: Writable<Turn>): void {
    const token = BigInt(turn.token);
    const owner = this.#terms.findLast((term) => term.token === token)?.label;
    if (owner !== undefined && turn.kept !== true) turn.owner = owner;
    if (turn.open === true) return;
    turn.replayedBy = this.#terms
      .filter((term) => term.token > token)
      .slice(-maxReplays)
      .map(({ label }) => label);
  }
}

const underOf = ({ turn, call }: OpenTrace): { pos: number; call: string } => ({ pos: turn, call: call.id });

/** "clerk 3 #1a2b3c4d" and "clerk 3" are calls of clerk. */
const agentOf = (name: string): string => name.replace(/ \d+( #[0-9a-f]{8})?$/, "");

interface RequestParts {
  readonly messages: readonly Message[];
  readonly before: number;
  readonly changed: readonly string[];
  readonly notes: { settings?: unknown; tools?: readonly string[]; hash?: string };
}

/** A decision of the author's own may note anything as its request. */
function requestOf(request: unknown): RequestParts {
  const nothing = { messages: [], before: 0, changed: [] };
  if (typeof request !== "object" || request === null) return { ...nothing, notes: {} };
  const { messages, before, changed, settings, tools, hash } = request as Partial<RequestNote>;
  if (!Array.isArray(messages) || !messages.every(isMessage)) return { ...nothing, notes: { settings: request } };
  const names = Array.isArray(changed) ? changed.filter((name) => typeof name === "string") : [];
  const notes = { ...defined({ settings, tools }), ...(typeof hash === "string" && { hash }) };
  return { messages, before: Number(before?.messages ?? 0) || 0, changed: names, notes };
}

export const isMessage = (value: unknown): value is Message => {
  const { role, parts } = (value ?? {}) as { role?: unknown; parts?: unknown };
  return typeof role === "string" && Array.isArray(parts) && parts.every((part) => typeof part?.type === "string");
};

function answerOf(value: unknown): Pick<ModelRecord, "message" | "finish" | "refused"> | undefined {
  if (value === undefined) return undefined;
  const { message, finish, refused } = (typeof value === "object" && value !== null ? value : {}) as ModelRecord;
  if (isMessage(message)) return { message, ...defined({ finish, refused }) };
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return { message: { role: "assistant", parts: [{ type: "text", text }] } };
}

function usageOf(usage: Readonly<Record<string, number>>): TurnUsage {
  const { input = 0, output = 0, cached, cacheWrite, reasoning, usd } = usage;
  return { input, output, ...defined({ cached, cacheWrite, reasoning, usd }) };
}

function add(sums: Record<string, number>, amounts: Readonly<Record<string, number>>, divisor = 1): void {
  for (const [unit, amount] of Object.entries(amounts)) {
    sums[unit] = (Object.hasOwn(sums, unit) ? sums[unit]! : 0) + amount / divisor;
  }
}

function sumsOf(turns: readonly Turn[]): ConversationSums {
  const own = turns.filter(({ kept }) => kept !== true);
  const sum = (of: (turn: Turn) => number | undefined): number => own.reduce((all, turn) => all + (of(turn) ?? 0), 0);
  const presumed: Record<string, number> = {};
  for (const turn of own) add(presumed, turn.presumed ?? {});
  const hasPrice = own.some(({ usage }) => usage?.usd !== undefined);
  return {
    turns: own.length,
    attempts: sum(({ attempts }) => attempts),
    lost: sum(({ lost }) => lost),
    input: sum(({ usage }) => usage?.input),
    output: sum(({ usage }) => usage?.output),
    cached: sum(({ usage }) => usage?.cached),
    reasoning: sum(({ usage }) => usage?.reasoning),
    ...(hasPrice && { usd: sum(({ usage }) => usage?.usd) }),
    presumed,
    models: [...new Set(own.flatMap(({ model }) => (model === undefined ? [] : [model])))].slice(0, maxModels),
  };
}
