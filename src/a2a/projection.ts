import { Artifact, Message, type Task, TaskState } from "@a2a-js/sdk";
import type { ModelRecord } from "../agent/conversation.ts";
import { describeThrown } from "../base/thrown.ts";
import { isTapeError } from "../model/errors.ts";
import { laneOf } from "../model/record-context.ts";
import type { JournalRecord } from "../model/records.ts";
import type { RunView } from "../store/contract/store.ts";
import type { ValuesOf } from "../store/value-keys.ts";
import { agentMessage, dataPart, identityOf, type TaskInput, type TaskOutput, textPart } from "./messages.ts";

/** How far a task has followed its run. */
export interface RunPlace {
  readonly id: string;
  /** The last record of the journal that the task shows. */
  seq: number;
  /** Its time. */
  at: number;
  /** The lane of the conversation: that of the first turn. */
  lane?: number;
  /** The position and the words of the last turn. */
  turn?: number;
  lastWords?: string;
  /** Open gates for clients, oldest first. */
  gates: readonly OpenQuestion[];
}

interface OpenQuestion {
  readonly pos: number;
  /** Answers come behind these notes of the inbox. */
  readonly notesSeen: number;
  readonly at: number;
  /** In the protocol's JSON. */
  readonly message: unknown;
}

/** The artifact of the run's result. While the run works, it has the words that are being written. */
export const resultId = "result";
/** Messages of one task; older ones are dropped. */
const maxHistory = 1_000;

/** The task of a run that has just been created. */
export function taskOf(created: Extract<JournalRecord, { kind: "run.created" }>): Task {
  const { taskId: id, contextId, message } = created.data.input as TaskInput;
  const status = statusOf(TaskState.TASK_STATE_SUBMITTED, created.at);
  return { id, contextId, status, artifacts: [], history: [Message.fromJSON(message)], metadata: undefined };
}

/**
 * Brings a task up to date with its run: the journal alone decides its status, its artifacts and the agent's messages, so
 * every process shows the same. false: nothing has changed.
 */
export async function project(of: ValuesOf, task: Task, place: RunPlace): Promise<boolean> {
  const from = place.seq;
  const { store, tenant } = of;
  for (let more = true; more; ) {
    const page = await store.read.journal(tenant, { run: place.id }, { from: place.seq + 1 }).catch(pruned);
    if (page === undefined) return settle(task, TaskState.TASK_STATE_FAILED, "the run's journal is gone");
    for (const record of page) take(task, place, record);
    const last = page.at(-1);
    if (last?.kind === "run.ended") return end(task, place, last.at, (await store.read.run(tenant, place.id))!);
    more = page.more === true;
    if (!more && place.seq > 1 && last !== undefined && task.status?.state === TaskState.TASK_STATE_SUBMITTED)
      task.status = statusOf(TaskState.TASK_STATE_WORKING, last.at);
  }
  return (await ask(of, task, place)) || place.seq > from;
}

function take(task: Task, place: RunPlace, record: JournalRecord): void {
  place.seq = record.seq;
  place.at = record.at;
  if (record.kind === "decision.made") {
    const { pos, value } = record.data;
    const text = wordsOf(value);
    if (text !== undefined) place.lane ??= laneOf(pos);
    if (laneOf(pos) === (place.lane ?? 0)) place.turn = pos;
    if (text === undefined || text === "" || laneOf(pos) !== place.lane) return;
    place.lastWords = text;
    say(task, TaskState.TASK_STATE_WORKING, record.at, agentMessage(task, `${task.id}/${pos}`, [textPart(text)]));
  } else if (record.kind === "gate.opened" && record.data.approvers?.agents === true && !record.data.callback) {
    const { pos, name, payload, notesSeen = 0 } = record.data;
    const parts = typeof payload === "string" || payload === undefined ? textPart(payload ?? name) : dataPart(payload);
    const message = Message.toJSON(agentMessage(task, `${task.id}/${pos}`, [parts]));
    place.gates = [...place.gates, { pos, notesSeen, at: record.at, message }];
  } else if (record.kind === "gate.resolved") {
    place.gates = place.gates.filter(({ pos }) => pos !== record.data.pos);
  }
}

/** The task waits for its client while a gate has no answer; the run may take an answer later. */
async function ask(of: ValuesOf, task: Task, place: RunPlace): Promise<boolean> {
  const before = task.status;
  let { at } = place;
  for (const gate of place.gates) {
    const answeredAt = await answered(of, place.id, gate);
    if (answeredAt !== undefined) {
      at = Math.max(at, answeredAt);
      continue;
    }
    const message = Message.fromJSON(gate.message);
    if (before?.message?.messageId === message.messageId) return false;
    say(task, TaskState.TASK_STATE_INPUT_REQUIRED, gate.at, message);
    return true;
  }
  if (before?.state !== TaskState.TASK_STATE_INPUT_REQUIRED) return false;
  task.status = statusOf(TaskState.TASK_STATE_WORKING, at);
  return true;
}

async function answered(of: ValuesOf, run: string, { pos, notesSeen }: OpenQuestion): Promise<number | undefined> {
  const notes = await of.store.read.journal(of.tenant, { run }, { from: notesSeen + 1, inbox: true });
  return notes.find((note) => note.kind === "signal.sent" && note.data.approves?.includes(pos))?.at;
}

function end(task: Task, { lastWords }: RunPlace, at: number, { status, cause, outcome }: RunView): boolean {
  if (status === "COMPLETED") {
    const { artifacts, message } = outputOf(outcome, lastWords);
    task.artifacts = artifacts;
    const words = message === undefined ? undefined : agentMessage(task, `${task.id}/end`, [textPart(message)]);
    say(task, TaskState.TASK_STATE_COMPLETED, at, words);
    return true;
  }
  if (status === "CANCELLED" || cause === "cancelled")
    return settle(task, TaskState.TASK_STATE_CANCELED, undefined, at);
  const isRejected = (outcome as { name?: unknown } | null)?.name === "TaskRejected";
  const state = isRejected ? TaskState.TASK_STATE_REJECTED : TaskState.TASK_STATE_FAILED;
  return settle(task, state, describeThrown(outcome), at);
}

function settle(task: Task, state: TaskState, words?: string, at = Date.parse(task.status!.timestamp!)): boolean {
  say(task, state, at, words === undefined ? undefined : agentMessage(task, `${task.id}/end`, [textPart(words)]));
  return true;
}

function outputOf(outcome: unknown, lastWords: string | undefined): { artifacts: Artifact[]; message?: string } {
  const given = isOutput(outcome) ? outcome : undefined;
  const artifacts = (given?.artifacts ?? []).map((one, k) =>
    Artifact.fromJSON({ artifactId: k === 0 ? resultId : `${resultId}-${k + 1}`, ...one }),
  );
  const value = given === undefined ? (outcome ?? lastWords) : artifacts.length === 0 ? lastWords : undefined;
  if (value !== undefined && value !== null) artifacts.push(resultOf(value));
  return { artifacts, ...(given?.message !== undefined && { message: given.message }) };
}

const resultOf = (value: unknown): Artifact => ({
  ...Artifact.fromJSON({ artifactId: resultId, name: resultId }),
  parts: [typeof value === "string" ? textPart(value) : dataPart(value)],
});

/** Plain data may have any fields; an output has these two alone, and at least one of them. */
function isOutput(value: unknown): value is TaskOutput {
  if (typeof value !== "object" || value === null) return false;
  const { artifacts, message } = value as TaskOutput;
  const keys = Object.keys(value);
  if (keys.length === 0 || !keys.every((key) => key === "artifacts" || key === "message")) return false;
  if (message !== undefined && typeof message !== "string") return false;
  return artifacts === undefined || (Array.isArray(artifacts) && artifacts.every((one) => Array.isArray(one?.parts)));
}

/** The words of a model's answer; undefined: no model made the decision. */
function wordsOf(value: unknown): string | undefined {
  const { message, hash } = (value ?? {}) as Partial<ModelRecord>;
  if (hash === undefined || !Array.isArray(message?.parts)) return undefined;
  return message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** A new status, whose message is also part of the history. */
function say(task: Task, state: TaskState, at: number, message?: Message): void {
  task.status = { ...statusOf(state, at), message };
  if (message !== undefined) addMessages(task, [message]);
}

export function addMessages(task: Task, messages: readonly Message[]): void {
  task.history = [...task.history, ...newMessages(task, messages)].slice(-maxHistory);
}

export function newMessages({ history }: Task, messages: readonly Message[]): Message[] {
  const known = new Set(history.map(identityOf));
  return messages.filter((message) => !known.has(identityOf(message)));
}

const statusOf = (state: TaskState, at: number) => ({
  state,
  message: undefined,
  timestamp: new Date(at).toISOString(),
});

function pruned(error: unknown): undefined {
  if (!isTapeError(error, "TAPE_RUN_NOT_FOUND")) throw error;
}
