import { toolApproval } from "../agent/approval.ts";
import type { Message, ModelRecord, Part, RequestNote } from "../agent/conversation.ts";
import { thrownKey } from "../agent/tool-policy.ts";
import { describeThrown } from "../base/thrown.ts";
import type { RunEvent } from "../host/follow-run.ts";
import { laneOf } from "../model/record-context.ts";
import type { Content } from "./shapes.ts";

/** A chunk of the SDK's UI message stream. */
export type UiChunk = Content;

type Turn = Extract<RunEvent, { type: "turn-ended" }>;
type ToolResult = Extract<RunEvent, { type: "tool-result" }>;

/**
 * The events of a run as chunks of one UI message. A step is a turn with the calls of its tools. Turns of sub-agents in
 * other lanes are not shown: the lane of the first turn is the conversation.
 */
export class UiChunks {
  readonly #run: string;
  /** undefined: no turn was seen yet. */
  #lane: number | undefined;
  #started = false;
  #step = false;
  /** The turn starts again within its step. */
  #reset = false;
  #block: { readonly type: string; readonly id: string } | undefined;
  #blocks = 0;
  /** Words of the current turn were streamed. */
  #streamed = false;
  /** Calls without an output. */
  readonly #calls = new Set<string>();
  readonly #callAt = new Map<number, string>();
  #finish: string | undefined;
  #out: UiChunk[] = [];

  constructor(run: string) {
    this.#run = run;
  }

  /** The chunks of an event. */
  of(event: RunEvent): readonly UiChunk[] {
    this.#out = [];
    if (!this.#started) this.#out.push({ type: "start", messageId: this.#run });
    this.#started = true;
    this.#take(event);
    return this.#out;
  }

  #take(event: RunEvent): void {
    if (event.type === "turn-started") this.#lane ??= laneOf(event.pos);
    if (event.type === "turn-ended" && messageIn(event) !== undefined) this.#lane ??= laneOf(event.pos);
    const shown = "pos" in event && laneOf(event.pos) === this.#lane;
    if (event.type === "tool-call") this.#callAt.set(event.pos, callIn(event.args) ?? "");
    else if (event.type === "tool-result") this.#result(event);
    else if (event.type === "approval-wanted") this.#approval(event);
    else if (event.type === "ended") this.#end(event.status, event.outcome);
    else if (!shown) return;
    else if (event.type === "turn-started") this.#startTurn();
    else if (event.type === "turn-reset") this.#resetTurn();
    else if (event.type === "turn-ended") this.#endTurn(event);
    else if (event.type === "text" || event.type === "reasoning") this.#words(event.type, event.text);
  }

  #startTurn(): void {
    this.#streamed = false;
    if (this.#reset) this.#reset = false;
    else this.#openStep();
  }

  #openStep(): void {
    if (this.#step) this.#out.push({ type: "finish-step" });
    this.#step = true;
    this.#out.push({ type: "start-step" });
  }

  #resetTurn(): void {
    this.#block = undefined;
    this.#reset = true;
    this.#out.push({ type: "reset-step" });
  }

  #words(type: string, delta: string): void {
    this.#streamed = true;
    if (this.#block?.type !== type) {
      this.#closeBlock();
      this.#block = { type, id: `${this.#run}-${++this.#blocks}` };
      this.#out.push({ type: `${type}-start`, id: this.#block.id });
    }
    this.#out.push({ type: `${type}-delta`, id: this.#block.id, delta });
  }

  #closeBlock(): void {
    if (this.#block !== undefined) this.#out.push({ type: `${this.#block.type}-end`, id: this.#block.id });
    this.#block = undefined;
  }

  #endTurn(turn: Turn): void {
    const message = messageIn(turn);
    this.#reset = false;
    if (message === undefined) {
      this.#closeBlock();
      return;
    }
    this.#reported(turn);
    if (!this.#streamed) this.#openStep();
    for (const part of message.parts) this.#part(part);
    this.#closeBlock();
    this.#finish = (turn.value as ModelRecord).finish;
    this.#streamed = false;
  }

  #part(part: Part): void {
    if ((part.type === "text" || part.type === "reasoning") && part.text !== "") {
      if (!this.#streamed) this.#whole(part.type, part.text);
    } else if (part.type === "tool_call") {
      this.#closeBlock();
      this.#calls.add(part.id);
      this.#out.push({ type: "tool-input-available", toolCallId: part.id, toolName: part.name, input: part.input });
    } else if (part.type === "tool_result") this.#output(part.id, { ok: true, value: part.output });
    else if (part.type === "file" && typeof part.data === "string") {
      const url = `data:${part.mediaType ?? "application/octet-stream"};base64,${part.data}`;
      this.#out.push({ type: "file", mediaType: part.mediaType, url });
    }
  }

  /** Words that were not streamed. They do not count as streamed: further parts of the answer follow. */
  #whole(type: string, text: string): void {
    this.#closeBlock();
    this.#words(type, text);
    this.#streamed = false;
  }

  /** Results of tools that no effect has: local ones, denied ones. The next request has them. */
  #reported({ request }: Turn): void {
    for (const { role, parts } of (request as RequestNote | undefined)?.messages ?? []) {
      if (role !== "tool") continue;
      for (const part of parts) if (part.type === "tool_result") this.#output(part.id, outputIn(part.output));
    }
  }

  #result({ pos, status, value, error }: ToolResult): void {
    const call = this.#callAt.get(pos);
    if (call === undefined || (status !== "CONFIRMED" && status !== "FAILED")) return;
    const thrown = (value as Readonly<Record<string, unknown>> | undefined)?.[thrownKey] ?? error;
    if (status === "FAILED" || thrown !== undefined) this.#output(call, { ok: false, words: describeThrown(thrown) });
    else this.#output(call, { ok: true, value });
  }

  #output(call: string, output: Output): void {
    if (!this.#calls.delete(call)) return;
    if (output.ok) this.#out.push({ type: "tool-output-available", toolCallId: call, output: output.value ?? null });
    else this.#out.push({ type: "tool-output-error", toolCallId: call, errorText: output.words });
  }

  #approval({ gate, pos, payload, cursor }: Extract<RunEvent, { type: "approval-wanted" }>): void {
    const call = gate === toolApproval.name ? callIn(payload) : undefined;
    if (call === undefined || !this.#calls.has(call)) return;
    const approvalId = approvalIdOf({ pos, cursor, run: this.#run });
    this.#out.push({ type: "tool-approval-request", approvalId, toolCallId: call });
  }

  #end(status: string, outcome: unknown): void {
    this.#closeBlock();
    if (this.#step) this.#out.push({ type: "finish-step" });
    if (status === "CANCELLED") this.#out.push({ type: "abort" });
    else if (status !== "COMPLETED")
      this.#out.push({ type: "error", errorText: `${status}: ${describeThrown(outcome)}` });
    const finishReason = this.#finish;
    this.#out.push({ type: "finish", ...(finishReason !== undefined && { finishReason }) });
  }
}

type Output = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly words: string };

/** The output of a tool in a prompt: `{ type: "json" | "text" | "error-text" | …, value }`. */
function outputIn(output: unknown): Output {
  const { type, value, reason } = (output ?? {}) as { type?: unknown; value?: unknown; reason?: unknown };
  const failed = typeof type === "string" && (type.startsWith("error") || type === "execution-denied");
  return failed ? { ok: false, words: String(value ?? reason ?? "denied") } : { ok: true, value };
}

function messageIn({ value }: Turn): Message | undefined {
  const { message, hash } = (value ?? {}) as Partial<ModelRecord>;
  return hash !== undefined && Array.isArray(message?.parts) ? message : undefined;
}

function callIn(value: unknown): string | undefined {
  const { call } = (value ?? {}) as { call?: unknown };
  return typeof call === "string" ? call : undefined;
}

/** Where an approval belongs, so that its answer finds the gate and the rest of the stream. */
export interface ApprovalPlace {
  readonly pos: number;
  readonly cursor: string;
  readonly run: string;
}

const approvalIdOf = ({ pos, cursor, run }: ApprovalPlace): string => `tape:${pos}:${cursor}:${run}`;

/** undefined: it is no approval of Tape. */
export function approvalPlaceOf(id: unknown): ApprovalPlace | undefined {
  const [, pos, cursor, run] = /^tape:(\d{1,15}):([\d.]{1,40}):(.+)$/s.exec(typeof id === "string" ? id : "") ?? [];
  return run === undefined ? undefined : { pos: Number(pos), cursor: cursor!, run };
}
