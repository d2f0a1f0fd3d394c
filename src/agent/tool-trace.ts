import { defined } from "../base/defined.ts";
import { describeThrown } from "../base/thrown.ts";
import { laneOf } from "../model/record-context.ts";
import type { JournalRecord, RecordData } from "../model/records.ts";
import type { Part } from "./conversation.ts";
import type { ToolEffect, TurnCall, TurnChild, TurnGate } from "./turn.ts";

export type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A tool call while the journal is read. `lane`: of the turn that requests it. */
export interface OpenTrace {
  readonly lane: string;
  readonly turn: number;
  readonly call: Writable<TurnCall>;
}

/** Errors come from the journal as they were thrown, or as plain data. */
export function textOfError(error: unknown): string {
  if (error instanceof Error) return describeThrown(error);
  const { message } = (typeof error === "object" && error !== null ? error : {}) as { message?: unknown };
  if (typeof message === "string") return message;
  return typeof error === "string" ? error : (JSON.stringify(error) ?? "");
}

/**
 * What became of the tool calls of a run: effects, approvals and children by the id of the call. Models repeat ids, so
 * the latest call with an id is meant, and the one in the nearest lane first.
 */
export class ToolTrace {
  readonly #byId = new Map<string, OpenTrace[]>();
  readonly #byLane = new Map<number, OpenTrace>();
  readonly #effects = new Map<number, Writable<ToolEffect>>();
  readonly #gates = new Map<number, Writable<TurnGate>>();
  readonly #children = new Map<number, Writable<TurnChild>>();
  readonly #lanes: ReadonlyMap<number, string>;

  /** `lanes`: the paths of lanes by number. */
  constructor(lanes: ReadonlyMap<number, string>) {
    this.#lanes = lanes;
  }

  /** The calls that an answer requests. */
  requested(turn: number, pos: number, parts: readonly Part[]): Writable<TurnCall>[] {
    const lane = this.#lanes.get(laneOf(pos)) ?? "";
    return parts.flatMap((part) => {
      if (part.type !== "tool_call") return [];
      const call: Writable<TurnCall> = { id: part.id, name: part.name, input: part.input };
      const others = this.#byId.get(part.id) ?? [];
      this.#byId.set(part.id, [...others.slice(-maxRepeated), { lane, turn, call }]);
      return [call];
    });
  }

  /** What the model reads as the result of a call. */
  answered(pos: number, parts: readonly Part[]): void {
    for (const part of parts) {
      if (part.type !== "tool_result") continue;
      const found = this.#find(part.id, pos);
      if (found !== undefined && !("output" in found.call)) found.call.output = part.output;
    }
  }

  /** The call to which a lane belongs, or one that encloses it: that of a sub-agent. */
  callOfLane(pos: number): OpenTrace | undefined {
    const known = this.#byLane.get(laneOf(pos));
    if (known !== undefined) return known;
    const names = (this.#lanes.get(laneOf(pos)) ?? "").split("/").slice(1);
    for (let depth = names.length; depth > 0; depth--) {
      const parent = names.slice(0, depth - 1).reduce((path, name) => `${path}/${name}`, "");
      for (const id of idsIn(names[depth - 1]!.replaceAll("%2F", "/").replaceAll("%25", "%"))) {
        const found = this.#byId.get(id)?.findLast(({ lane }) => lane === parent);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }

  add(record: JournalRecord): TurnGate | TurnChild | undefined {
    switch (record.kind) {
      case "effect.intended":
        this.#intended(record.data, record.at);
        return undefined;
      case "effect.dispatched":
      case "effect.settled":
      case "effect.received":
        this.#moved(record);
        return undefined;
      case "gate.opened":
        return this.#opened(record.data, record.at);
      case "gate.resolved":
        this.#resolved(record.data, record.at);
        return undefined;
      case "child.started": {
        const { pos, id, workflow } = record.data;
        return this.#child({ pos, run: id, workflow });
      }
      case "child.received": {
        const child = this.#children.get(record.data.childPos);
        if (child !== undefined) child.status = record.data.status;
        return undefined;
      }
      default:
        return undefined;
    }
  }

  #intended({ pos, name, args, businessKey }: RecordData<"effect.intended">, at: number): void {
    const { call } = (args ?? {}) as { call?: unknown };
    const found = typeof call === "string" ? this.#find(call, pos) : undefined;
    if (found === undefined) return;
    this.#byLane.set(laneOf(pos), found);
    const effect: Writable<ToolEffect> = {
      ...{ pos, name, status: "PENDING", attempts: 0, startedAt: at },
      ...defined({ businessKey }),
    };
    this.#effects.set(pos, effect);
    found.call.effect = effect;
  }

  #moved(record: Extract<JournalRecord, { kind: "effect.dispatched" | "effect.settled" | "effect.received" }>): void {
    const effect = this.#effects.get(record.data.pos);
    if (effect === undefined) return;
    if (record.kind === "effect.dispatched") {
      if ((record.data.sub ?? 0) !== 0) return;
      effect.status = "DISPATCHED";
      effect.attempts = Math.max(effect.attempts, record.data.attempt);
      effect.token = String(record.token);
      return;
    }
    const { reason, value, error } = record.data;
    if (record.kind === "effect.settled" && (record.data.sub ?? 0) !== 0) return;
    effect.status = record.kind === "effect.settled" ? record.data.to : record.data.status;
    if (reason !== undefined) effect.reason = reason;
    if (value !== undefined) effect.value = value;
    if (error !== undefined) effect.error = textOfError(error);
    if (effect.status === "CONFIRMED" || effect.status === "FAILED") effect.settledAt = record.at;
  }

  /** Returns the gate if it belongs to no call. */
  #opened({ pos, name, payload, binds }: RecordData<"gate.opened">, at: number): TurnGate | undefined {
    const gate: Writable<TurnGate> = { pos, name, status: "OPEN", openedAt: at, ...defined({ payload, binds }) };
    this.#gates.set(pos, gate);
    const { call } = (typeof payload === "object" && payload !== null ? payload : {}) as { call?: unknown };
    const found = typeof call === "string" ? this.#find(call, pos) : undefined;
    if (found === undefined) return gate;
    this.#byLane.set(laneOf(pos), found);
    found.call.approval = gate;
    return undefined;
  }

  #resolved({ pos, to, note, value }: RecordData<"gate.resolved">, at: number): void {
    const gate = this.#gates.get(pos);
    if (gate === undefined) return;
    gate.status = to;
    gate.resolvedAt = at;
    if (note !== undefined) gate.note = note;
    if (value !== undefined) gate.value = value;
    const { approved } = (typeof value === "object" && value !== null ? value : {}) as { approved?: unknown };
    if (typeof approved === "boolean") gate.approved = approved;
  }

  #child(child: TurnChild): TurnChild | undefined {
    const own: Writable<TurnChild> = { ...child };
    this.#children.set(child.pos, own);
    const found = this.callOfLane(child.pos);
    if (found === undefined) return own;
    found.call.children = [...(found.call.children ?? []), own];
    return undefined;
  }

  #find(id: string, pos: number): OpenTrace | undefined {
    const traces = this.#byId.get(id);
    const path = this.#lanes.get(laneOf(pos)) ?? "";
    return traces?.findLast(({ lane }) => path === lane || path.startsWith(`${lane}/`)) ?? traces?.at(-1);
  }
}

/** Calls with one id that are kept apart; earlier ones have ended long ago. */
const maxRepeated = 16;

/** The lane of a call is `<effect> <id>`; a number follows if the id is in use. Both may have spaces. */
function* idsIn(name: string): Generator<string> {
  for (let at = name.indexOf(" "); at >= 0; at = name.indexOf(" ", at + 1)) {
    const id = name.slice(at + 1);
    yield id;
    const numbered = / \d+$/.exec(id);
    if (numbered !== null) yield id.slice(0, numbered.index);
  }
}
