import { z } from "zod";
import { letterStates } from "../../model/dead-letter.ts";
import { group } from "../route.ts";
import { cursorText, fence, journal, maxItems, more, name, names, text, whole, wholeText } from "../shapes.ts";
import { deadLetter, newLetter, sinkRow, subject } from "../views.ts";

/** Characters; the store counts bytes, by its own limit. */
const maxCheckpoint = 65_536;

const byName = z.strictObject({ name });
const audit = { reason: text.min(1), by: name.exactOptional() };
const audited = z.strictObject(audit);
const letters = z.strictObject({ ...audit, events: names.exactOptional() });
const count = z.strictObject({ letters: whole });

/** Sinks: where each one is, what it refused, and what its fan-out writes under its fence. */
export const sinks = group({
  "sinks.list": {
    method: "GET",
    path: "/v1/sinks",
    role: "reader",
    repeat: "read",
    summary: "Lists sinks by name: the lease of their fan-out with its checkpoint, and open dead letters",
    query: z.strictObject({ above: text.exactOptional(), limit: wholeText.exactOptional() }),
    answer: z.strictObject({ sinks: z.array(sinkRow), more }),
  },
  "sinks.deadLetters": {
    method: "GET",
    path: "/v1/sinks/{name}/dead-letters",
    role: "reader",
    repeat: "read",
    summary: "Lists the dead letters of a sink in one state, oldest first; after continues a listing",
    params: byName,
    query: z.strictObject({
      state: z.enum(letterStates).exactOptional(),
      after: cursorText.exactOptional(),
      limit: wholeText.exactOptional(),
    }),
    answer: z.strictObject({ letters: z.array(deadLetter), more }),
  },
  "sinks.replay": {
    method: "POST",
    path: "/v1/sinks/{name}/replay",
    role: "operator",
    repeat: "key",
    manual: true,
    size: "names",
    summary: "Has open dead letters of a sink sent again: the named events, or all of them",
    params: byName,
    body: letters,
    answer: count,
    errors: ["TAPE_SINK_UNKNOWN"],
  },
  "sinks.discard": {
    method: "POST",
    path: "/v1/sinks/{name}/discard",
    role: "operator",
    repeat: "key",
    manual: true,
    size: "names",
    summary: "Discards open dead letters of a sink: the named events, or all of them",
    params: byName,
    body: letters,
    answer: count,
    errors: ["TAPE_SINK_UNKNOWN"],
  },
  "sinks.pause": {
    method: "POST",
    path: "/v1/sinks/{name}/pause",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Pauses a sink: its fan-out sends nothing until it is resumed, and continues from its checkpoint then",
    params: byName,
    body: audited,
    answer: z.strictObject({}),
    errors: ["TAPE_SINK_UNKNOWN"],
  },
  "sinks.resume": {
    method: "POST",
    path: "/v1/sinks/{name}/resume",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Resumes a sink that was paused, by an operator or by its fan-out",
    params: byName,
    body: audited,
    answer: z.strictObject({}),
    errors: ["TAPE_SINK_UNKNOWN"],
  },
  "sinks.rewind": {
    method: "POST",
    path: "/v1/sinks/{name}/rewind",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Has a sink continue before an event, from the start, or from now",
    params: byName,
    body: z.strictObject({ ...audit, event: name }),
    answer: z.strictObject({}),
    errors: ["TAPE_SINK_UNKNOWN", "TAPE_NOT_FOUND"],
  },
  "sinks.forget": {
    method: "POST",
    path: "/v1/sinks/{name}/forget",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Removes the checkpoint of a sink, so that it holds back no pruning; a new start begins again",
    params: byName,
    body: audited,
    answer: z.strictObject({}),
    errors: ["TAPE_SINK_UNKNOWN"],
  },
  "store.checkpoint": {
    method: "POST",
    path: "/v1/store/checkpoint",
    role: "worker",
    repeat: "same",
    summary: "Replaces the checkpoint of a named lease under its fence; null removes it, and no record is written",
    body: z.strictObject({ fence, text: z.string().max(maxCheckpoint).nullable() }),
    answer: z.strictObject({}),
    errors: ["TAPE_FENCED"],
  },
  "store.deadLetter": {
    method: "POST",
    path: "/v1/store/dead-letter",
    role: "worker",
    repeat: "same",
    summary: "Stores an event that a sink refused, under the fence of the sink's lease",
    body: z.strictObject({ fence, letter: newLetter }),
    answer: z.strictObject({}),
    errors: ["TAPE_FENCED"],
  },
  "store.letterSent": {
    method: "POST",
    path: "/v1/store/letter-sent",
    role: "worker",
    repeat: "same",
    summary: "Marks the replay of a dead letter as delivered, under the fence of the sink's lease",
    body: z.strictObject({ fence, event: name }),
    answer: z.strictObject({}),
    errors: ["TAPE_FENCED"],
  },
  "store.subjects": {
    method: "POST",
    path: "/v1/store/subjects",
    role: "worker",
    repeat: "read",
    size: "names",
    summary: "Reads which run, item or named lease the records of these journals are about",
    body: z.strictObject({ journals: z.array(journal).max(maxItems) }),
    answer: z.strictObject({ subjects: z.array(subject) }),
  },
});
