import { TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { GateDefinition } from "../../sdk/gate.ts";
import type { GateRequest } from "../../sdk/talk.ts";
import { assertName } from "../../sdk/validate.ts";
import { encodeRecord } from "../../store/validate/entry.ts";
import { asStored, toStoredError } from "../replay/stored-value.ts";
import type { Operations } from "./operations.ts";

/** What a run shows and answers: records that no operation waits for, checked at the call. */

export function publish(ops: Operations, name: string, value: unknown): void {
  const { history, bodyEnded, options } = ops.drive;
  if (bodyEnded) return; // as in now()
  assertName("tape.publish: the value", name);
  ops.refuseNested("state.published", name);
  const { published } = history;
  const max = options.store.limits.publishedNames;
  if (!published.has(name) && published.size >= max) {
    const message = `tape.publish: ${name} is one name too many, a run publishes at most ${max}`;
    throw new TapeError("TAPE_TOO_LARGE", message, { limit: "publishedNames", name });
  }
  record(ops, name, (pos) => ({ kind: "state.published", data: { pos, name, value: asStored(value) } }));
  published.add(name);
}

/** The request that a gate has received, or its time-out. */
export function requestOf<T, R>(
  ops: Operations,
  gate: GateDefinition<T>,
  { to, value, note }: RecordData<"gate.resolved">,
): GateRequest<T, R> {
  if (to !== "RECEIVED") return { status: "timeout" };
  const { name } = gate;
  let answered = false;
  if (note !== undefined) ops.generation.unanswered.set(note, name);
  const answer = (reply: { value?: unknown; error?: unknown }): void => {
    if (ops.drive.bodyEnded) return;
    ops.refuseNested("reply.sent", name);
    if (answered)
      throw new TapeError("TAPE_BAD_INPUT", `gate ${name}: the request is answered already`, { gate: name });
    record(ops, name, (pos) => ({ kind: "reply.sent", data: { pos, ...(note !== undefined && { note }), ...reply } }));
    answered = true;
    if (note !== undefined) ops.generation.unanswered.delete(note);
  };
  return {
    status: "received",
    value: value as T,
    reply: (result) => answer({ value: asStored(result) }),
    reject: (error) => answer({ error: toStoredError(error) }),
  };
}

/** Takes the next position and writes its record with the next append, unless the journal has it. */
export function record(ops: Operations, name: string, make: (pos: number) => NewRecord): void {
  const { history, options } = ops.drive;
  const sample = make(0);
  encodeRecord(sample, options.store.limits); // a bad value throws here, at the call, and does not end the drive
  const pos = ops.nextPosition({ kinds: [sample.kind], name });
  if (pos !== undefined && !history.byPos.has(pos)) ops.writeDetached(make(pos));
}
