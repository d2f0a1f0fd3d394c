import { withoutContent } from "../agent/hidden.ts";
import { ConversationBuilder } from "../agent/rebuild-conversation.ts";
import type { ConversationSums, ToolEffect, Turn, TurnCall, TurnChild, TurnGate, TurnUsage } from "../agent/turn.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { Store } from "../store/contract/store.ts";
import { journalPages } from "../store/read-all.ts";
import { ConversationTexts, charsBeside } from "./conversation-texts.ts";

/** Which part of a conversation to read. */
export interface ConversationRequest {
  /** The number of the first turn, from 0 on. */
  readonly from?: number;
  /** Turns of a page: 1 to 200, 50 by default. A page with much text has fewer. */
  readonly limit?: number;
  /** false: the content is left out, see {@link withoutContent}. */
  readonly content?: boolean;
}

/** A page of the conversation of a run. */
export interface ConversationPage {
  readonly run: string;
  readonly status: string;
  readonly turns: readonly Turn[];
  /** The number of the first turn. */
  readonly from: number;
  /** The number of the next turn; absent: these are the last ones. */
  readonly next?: number;
  /** Of all turns that were read. */
  readonly sums: ConversationSums & {
    /** Tokens of the latest turns, oldest first. */
    readonly bars: readonly (Pick<Turn, "pos" | "agent"> & Partial<TurnUsage>)[];
  };
  /** The content is hidden. */
  readonly hidden?: true;
  /** The journal is longer than what is read of one. */
  readonly cut?: true;
}

const defaultTurns = 50;
const maxTurns = 200;
/** Content of a page; one turn is always on it. */
const maxPageChars = 2 * 1024 * 1024;
const maxBars = 500;
/** A conversation of 10 000 turns: reading more would keep a server busy for one caller. */
const maxRecords = 100_000;
const maxEffects = 1_000;

/** Reads a page of a run's conversation. The journal is read as a whole, because sums and tool calls need all of it. */
export async function readConversation(
  { read }: Pick<Store, "read">,
  tenant: string,
  run: string,
  { from = 0, limit = defaultTurns, content = true }: ConversationRequest = {},
): Promise<ConversationPage> {
  if (!Number.isSafeInteger(from) || from < 0) throw badPage("from", "a number of a turn, from 0 on");
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > maxTurns) throw badPage("limit", `from 1 to ${maxTurns}`);
  const view = await read.run(tenant, run);
  if (view === undefined) throw notFound("run", run);
  const builder = new ConversationBuilder();
  const texts = new ConversationTexts(read, tenant, run);
  let count = 0;
  for await (const records of journalPages((seq) => read.journal(tenant, { run }, { from: seq }))) {
    for (const record of records) builder.add(await texts.record(record));
    count += records.length;
    if (count >= maxRecords) break;
  }
  const { turns, sums } = builder.build();
  const page: Turn[] = [];
  for (const turn of pageOf(turns.slice(from, from + limit))) page.push(await texts.turn(turn));
  const completed = await new Completion(read, tenant, run).of(page);
  const end = from + page.length;
  return {
    ...{ run, status: view.status, from },
    sums: { ...sums, bars: turns.slice(-maxBars).map(({ pos, agent, usage }) => ({ pos, agent, ...usage })) },
    turns: content ? completed : completed.map(withoutContent),
    ...(end < turns.length && page.length > 0 && { next: end }),
    ...(!content && { hidden: true as const }),
    ...(count >= maxRecords && { cut: true as const }),
  };
}

const badPage = (field: string, needs: string): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `conversation: ${field} is ${needs}`, { field });

function pageOf(turns: readonly Turn[]): readonly Turn[] {
  let chars = 0;
  const end = turns.findIndex((turn, k) => {
    const { messages, answer, calls } = turn;
    chars += charsBeside(turn) + (JSON.stringify([messages, answer, calls])?.length ?? 0);
    return k > 0 && chars > maxPageChars;
  });
  return end < 0 ? turns : turns.slice(0, end);
}

const isSettled = ({ status }: ToolEffect): boolean => status === "CONFIRMED" || status === "FAILED";

/** Adds what the journal of the run does not have: who approved, how items and children are now. */
class Completion {
  readonly #read: Store["read"];
  readonly #tenant: string;
  readonly #run: string;
  #effects = new Map<number, { status: string; attempt: number; token: string | undefined; reason: string | null }>();
  readonly #children = new Map<string, string>();

  constructor(read: Store["read"], tenant: string, run: string) {
    this.#read = read;
    this.#tenant = tenant;
    this.#run = run;
  }

  async of(turns: readonly Turn[]): Promise<Turn[]> {
    const calls = turns.flatMap((turn) => turn.calls);
    if (calls.some(({ effect }) => effect !== undefined && !isSettled(effect))) await this.#readEffects();
    const children = [...calls, ...turns].flatMap((of) => of.children ?? []);
    await this.#readChildren(children.filter(({ status }) => status === undefined).map(({ run }) => run));
    const completed: Turn[] = [];
    for (const turn of turns) completed.push(await this.#turn(turn));
    return completed;
  }

  async #readEffects(): Promise<void> {
    const rows = await this.#read.effects(this.#tenant, { run: this.#run, role: "effect", limit: maxEffects });
    this.#effects = new Map(
      rows.map(({ pos, status, attempt, attemptToken, reason }) => [
        pos,
        { status, attempt, token: attemptToken === null ? undefined : String(attemptToken), reason },
      ]),
    );
  }

  async #readChildren(runs: readonly string[]): Promise<void> {
    if (runs.length === 0) return;
    const found = await this.#read.progress(this.#tenant, runs.slice(0, maxEffects));
    for (const child of found) if (child !== undefined) this.#children.set(child.id, child.status);
  }

  async #turn(turn: Turn): Promise<Turn> {
    const calls: TurnCall[] = [];
    for (const call of turn.calls) calls.push(await this.#call(call));
    const gates: TurnGate[] = [];
    for (const gate of turn.gates ?? []) gates.push(await this.#gate(gate));
    return {
      ...turn,
      calls,
      ...(turn.gates !== undefined && { gates }),
      ...(turn.children !== undefined && { children: turn.children.map((child) => this.#child(child)) }),
    };
  }

  async #call(call: TurnCall): Promise<TurnCall> {
    const { effect, approval, children } = call;
    return {
      ...call,
      ...(effect !== undefined && { effect: this.#effect(effect) }),
      ...(approval !== undefined && { approval: await this.#gate(approval) }),
      ...(children !== undefined && { children: children.map((child) => this.#child(child)) }),
    };
  }

  #effect(effect: ToolEffect): ToolEffect {
    const row = isSettled(effect) ? undefined : this.#effects.get(effect.pos);
    if (row === undefined) return effect;
    const { status, attempt, token, reason } = row;
    return {
      ...{ ...effect, status, attempts: attempt },
      ...(token !== undefined && { token }),
      ...(reason !== null && { reason }),
    };
  }

  #child(child: TurnChild): TurnChild {
    const status = child.status ?? this.#children.get(child.run);
    return status === undefined ? child : { ...child, status };
  }

  async #gate(gate: TurnGate): Promise<TurnGate> {
    if (gate.note === undefined) return gate;
    const page = { inbox: true, from: gate.note, limit: 1 };
    const [record] = await this.#read.journal(this.#tenant, { run: this.#run }, page);
    if (record?.kind !== "signal.sent" || record.seq !== gate.note) return gate;
    const by = record.data.by ?? record.data.via?.name;
    return by === undefined ? gate : { ...gate, by };
  }
}
