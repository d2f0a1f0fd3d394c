import { z } from "zod";
import { group } from "../route.ts";
import { document, more, name, names, text, time, value, whole, wholeText } from "../shapes.ts";
import { scheduleRow, valueView } from "../views.ts";

const byKey = z.strictObject({ key: name });
const byId = z.strictObject({ id: name });

/** Values with versions, and schedules. */
export const values = group({
  "values.list": {
    method: "GET",
    path: "/v1/values",
    role: "reader",
    repeat: "read",
    summary:
      "Lists values whose keys start with a prefix, by key; a page continues after `above`, downwards with order desc",
    query: z.strictObject({
      prefix: text.exactOptional(),
      limit: wholeText.exactOptional(),
      above: text.exactOptional(),
      order: z.enum(["asc", "desc"]).exactOptional(),
    }),
    answer: z.strictObject({ values: z.array(valueView), more }),
  },
  "values.get": {
    method: "GET",
    path: "/v1/values/{key}",
    role: "reader",
    repeat: "read",
    summary: "Reads a value and its version; a deleted value keeps its version",
    params: byKey,
    answer: z.strictObject({ value: valueView.optional() }),
  },
  "values.put": {
    method: "PUT",
    path: "/v1/values/{key}",
    role: "starter",
    repeat: "key",
    summary: "Writes a value if the condition holds",
    params: byKey,
    size: "payload",
    body: z.strictObject({
      value,
      when: z.union([z.enum(["must_create", "unconditional"]), z.strictObject({ version: whole })]),
    }),
    answer: valueView,
    errors: ["TAPE_VERSION_CONFLICT", "TAPE_NOT_ENCODABLE"],
  },
  "values.delete": {
    method: "DELETE",
    path: "/v1/values/{key}",
    role: "starter",
    repeat: "key",
    summary: "Deletes a value if it has this version",
    params: byKey,
    query: z.strictObject({ version: wholeText }),
    answer: valueView,
    errors: ["TAPE_VERSION_CONFLICT"],
  },
  "values.history": {
    method: "GET",
    path: "/v1/values/{key}/history",
    role: "reader",
    repeat: "read",
    summary: "Reads the versions of a value after the given one, oldest first",
    params: byKey,
    query: z.strictObject({ after: wholeText, limit: wholeText.exactOptional() }),
    answer: z.strictObject({ values: z.array(valueView), more }),
    errors: ["TAPE_VALUE_COMPACTED"],
  },
  "values.watch": {
    method: "GET",
    path: "/v1/values/{key}/stream",
    role: "reader",
    repeat: "read",
    summary: "Streams the versions of a value after the given one, one per line. Resume from the last version",
    params: byKey,
    query: z.strictObject({ after: wholeText }),
    answer: valueView,
    stream: true,
    errors: ["TAPE_VALUE_COMPACTED"],
  },
  "schedules.list": {
    method: "GET",
    path: "/v1/schedules",
    role: "reader",
    repeat: "read",
    summary: "Lists schedules by id, and when each is due next; above continues a listing",
    query: z.strictObject({ above: text.exactOptional(), limit: wholeText.exactOptional() }),
    answer: z.strictObject({ schedules: z.array(scheduleRow), more }),
  },
  "schedules.put": {
    method: "PUT",
    path: "/v1/schedules/{id}",
    role: "starter",
    repeat: "key",
    summary:
      "Writes a schedule; with seen only if the row has not changed. With change the audit log records who changed " +
      "which fields of the rule, and why",
    params: byId,
    size: "payload",
    body: z.strictObject({
      spec: document,
      nextAt: time.nullable(),
      paused: z.boolean(),
      seen: z.strictObject({ version: whole, spec: document }).nullable().exactOptional(),
      change: z.strictObject({ by: name.exactOptional(), reason: text.min(1), changed: names }).exactOptional(),
    }),
    answer: scheduleRow,
    errors: ["TAPE_VERSION_CONFLICT"],
  },
  "schedules.delete": {
    method: "DELETE",
    path: "/v1/schedules/{id}",
    role: "starter",
    repeat: "key",
    summary: "Deletes a schedule",
    params: byId,
    answer: z.strictObject({ deleted: z.boolean() }),
  },
});
