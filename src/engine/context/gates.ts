import type { Duration } from "../../base/duration.ts";
import { TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { GateAnswer, GateOptions } from "../../sdk/context.ts";
import { type GateDefinition, isReplyGate } from "../../sdk/gate.ts";
import { checkNow } from "../../sdk/schema.ts";
import type { GateRequest } from "../../sdk/talk.ts";
import { assertKnownKeys, assertName, durationOrThrow } from "../../sdk/validate.ts";
import type { Runner } from "../../sdk/workflow.ts";
import type { Note } from "../replay/history.ts";
import { asStored } from "../replay/stored-value.ts";
import { type Operations, unwrap } from "./operations.ts";
import { requestOf } from "./talk.ts";

/** Waits for signals and for time: each is opened by a record, ended by a note, and costs nothing in between. */

export function openGate<T, R>(
  ops: Operations,
  gate: GateDefinition<T>,
  options: GateOptions,
): Promise<GateRequest<T, R>> {
  const { name } = gate ?? {};
  assertName("tape.gate: the gate", name);
  const { approvers } = gate;
  assertKnownKeys(`gate ${name}`, options, ["payload", "binds", "timeout"]);
  const binds = options.binds?.hash;
  const payload = asStored(options.payload);
  const timeoutMs =
    options.timeout === undefined ? undefined : milliseconds(`gate ${name}`, "timeout", options.timeout);
  const answerOf = (data: RecordData<"gate.resolved">): GateRequest<T, R> => {
    ops.generation.lastNoteReceived = Math.max(ops.generation.lastNoteReceived, data.note ?? 0);
    return isReplyGate(gate) ? requestOf(ops, gate, data) : (gateAnswer<T>(data) as GateRequest<T, R>);
  };
  return ops.operation<GateRequest<T, R>>({
    kinds: ["gate.opened", "step.done"],
    name,
    ...(binds === undefined ? {} : { hash: binds }),
    result: ({ record }) => {
      unwrap(record.data as RecordData<"step.done"> & RecordData<"gate.resolved">);
      return answerOf(record.data as RecordData<"gate.resolved">);
    },
    begin: (handle) => {
      const { pos } = handle;
      noteGate(ops.drive.options.runner, gate);
      const data: RecordData<"gate.opened"> = {
        pos,
        name,
        notesSeen: ops.drive.waits.notesTaken,
        ...(payload === undefined ? {} : { payload }),
        ...(binds === undefined ? {} : { binds }),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        ...(approvers === undefined ? {} : { approvers }),
      };
      ops.wait(handle, {
        about: `gate ${name}`,
        opening: { kind: "gate.opened", data },
        match: (note, opened): NewRecord | undefined => {
          if (isTimeout(note, pos)) return { kind: "gate.resolved", data: { pos, to: "TIMED_OUT" } };
          // A signal with a position opens the callback there, and no gate of the same name.
          if (note.kind !== "signal.sent" || note.data.name !== name || note.data.pos !== undefined) return undefined;
          const before = opened?.kind === "gate.opened" ? opened.data : data;
          if (!isApprovalFor(note.data.binds, binds, note.seq > (before.notesSeen ?? 0))) return undefined;
          if (needsApproval(before, note.data) && !note.data.approves?.includes(pos)) return undefined;
          return received(gate, pos, note.data, note.seq);
        },
        resultOf: (record) => answerOf(record.data as RecordData<"gate.resolved">),
      });
    },
  });
}

/** Names are bounded, because a program may make them up. */
const maxOpenedGates = 100;

function noteGate({ openedGates }: Runner, gate: GateDefinition<unknown>): void {
  if (gate.schema === undefined || openedGates === undefined) return;
  if (openedGates.size < maxOpenedGates || openedGates.has(gate.name)) openedGates.set(gate.name, gate);
}

/** The record for a signal: its value as the schema returns it, or the refusal of a value that does not fit. */
function received(
  gate: GateDefinition<unknown>,
  pos: number,
  { value, asks }: RecordData<"signal.sent">,
  note: number,
): NewRecord {
  const checked = checkNow(gate.schema, value);
  if ("value" in checked) return { kind: "gate.resolved", data: { pos, to: "RECEIVED", value: checked.value, note } };
  const reason = checked.fault.slice(0, maxReasonChars);
  return { kind: "signal.refused", data: { name: gate.name, note, reason, ...(asks && { asks }) } };
}

export const isTimeout = (note: Note, pos: number): boolean =>
  note.kind === "timer.fired" && note.data.pos === pos && note.data.purpose === "gate_timeout";

/** Enough to see what is wrong; a validator may list a thousand faults. */
const maxReasonChars = 500;

/**
 * A bound gate accepts a signal that is bound to the same effect call, or an unbound one sent while the gate is open. A
 * signal bound to another call resolves neither this gate nor an unbound one.
 */
function isApprovalFor(signal: string | undefined, gate: string | undefined, whileOpen: boolean): boolean {
  if (signal !== undefined) return signal === gate;
  return gate === undefined || whileOpen;
}

/**
 * Whether the store must have found that the sender may answer this gate. For a bound gate it judges every token. A
 * signal that binds the same call was judged on its own; an unbound one only if the gate was open.
 */
function needsApproval(gate: RecordData<"gate.opened">, { binds, via }: RecordData<"signal.sent">): boolean {
  if (gate.approvers !== undefined) return true;
  return gate.binds !== undefined && binds === undefined && via?.token !== undefined;
}

export function gateAnswer<T>(data: RecordData<"gate.resolved">): GateAnswer<T> {
  return data.to === "RECEIVED" ? { status: "received", value: data.value as T } : { status: "timeout" };
}

export function sleepFor(ops: Operations, duration: Duration): Promise<void> {
  const delayMs = milliseconds("sleep", "its duration", duration);
  return sleep(ops, { delayMs }, `sleep of ${delayMs} ms`);
}

/** By the store's clock: the sleep ends at the given moment, however long the write takes. */
export function sleepUntil(ops: Operations, moment: Date | number): Promise<void> {
  const until = moment instanceof Date ? moment.getTime() : typeof moment === "number" ? Math.ceil(moment) : Number.NaN;
  if (!(until >= 0 && until <= maxDateMs)) {
    throw new TapeError("TAPE_BAD_INPUT", `${String(moment)} is not a moment: pass a Date, or milliseconds since 1970`);
  }
  const delayMs = Math.max(0, until - Math.floor(ops.drive.options.clock.wall()));
  return sleep(ops, { delayMs, until }, `sleep until ${new Date(until).toISOString()}`);
}

/** The last moment that a Date can represent. */
const maxDateMs = 8.64e15;

function sleep(
  ops: Operations,
  timing: Pick<RecordData<"timer.set">, "delayMs" | "until">,
  about: string,
): Promise<void> {
  return ops.operation<void>({
    kinds: ["timer.set", "step.done"],
    name: "sleep",
    result: ({ record }) => void unwrap(record.data as RecordData<"step.done">),
    begin: (handle) => {
      const { pos } = handle;
      ops.wait<void>(handle, {
        about,
        opening: { kind: "timer.set", data: { pos, purpose: "sleep", ...timing } },
        match: (note) =>
          note.kind === "timer.fired" && note.data.pos === pos && note.data.purpose === "sleep"
            ? { kind: "sleep.ended", data: { pos } }
            : undefined,
        endSleepRecord: { kind: "sleep.ended", data: { pos, fired: true } },
        resultOf: () => undefined,
      });
    },
  });
}

/** Whole milliseconds, rounded up. */
export const milliseconds = (subject: string, field: string, duration: Duration): number =>
  Math.ceil(durationOrThrow(subject, field, duration));
