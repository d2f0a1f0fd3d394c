import { z } from "zod";
import { group } from "../route.ts";
import { flagText, listText, more, name, spanMs, text, value, whole, wholeText } from "../shapes.ts";
import { businessKeyRow, effectRow, gateRow, runStatus, timerRow } from "../views.ts";

/** What an operator needs to resolve an effect in doubt. */
const effectInDoubt = z.strictObject({
  effect: effectRow,
  runId: name,
  workflow: z.string(),
  runStatus,
  observations: whole,
  lastObservation: z.strictObject({ at: z.number(), observation: z.string(), detail: value }).nullable(),
  evidence: z.array(z.strictObject({ at: z.number(), attempt: whole, happened: z.boolean(), value, error: value })),
  lastRequest: z.strictObject({ at: z.number(), by: z.string(), reason: z.string(), detail: value }).nullable(),
  nextInMs: z.number().nullable(),
  observer: z.string().nullable(),
});

/** What runs have open: effects and obligations, gates, timers, business keys. */
export const effects = group({
  "effects.list": {
    method: "GET",
    path: "/v1/effects",
    role: "reader",
    repeat: "read",
    summary:
      "Lists effects, or obligations with role=compensation, by status and age, oldest first; with order=desc newest " +
      "first. Pass next as after for the next page",
    query: z.strictObject({
      run: name.exactOptional(),
      item: wholeText.exactOptional(),
      role: z.enum(["effect", "compensation"]).exactOptional(),
      root: wholeText.exactOptional(),
      below: wholeText.exactOptional(),
      from: wholeText.exactOptional(),
      status: listText.exactOptional(),
      minAgeMs: wholeText.exactOptional(),
      after: text.exactOptional(),
      order: z.enum(["asc", "desc"]).exactOptional(),
      limit: wholeText.exactOptional(),
    }),
    answer: z.strictObject({ effects: z.array(effectRow), more, next: text.exactOptional() }),
  },
  "inDoubt.list": {
    method: "GET",
    path: "/v1/in-doubt",
    role: "reader",
    repeat: "read",
    summary:
      "Lists effects and obligations that are UNKNOWN or STUCK, with observations, evidence and the next observation",
    query: z.strictObject({
      role: z.enum(["effect", "compensation"]).exactOptional(),
      run: name.exactOptional(),
      limit: wholeText.exactOptional(),
    }),
    answer: z.strictObject({ inDoubt: z.array(effectInDoubt), more: z.boolean() }),
  },
  "effects.resolve": {
    method: "POST",
    path: "/v1/runs/{id}/effects/{pos}/{sub}/resolve",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Resolves an effect in doubt: as confirmed or failed, or by a retry, an observation or a compensation",
    params: z.strictObject({ id: name, pos: wholeText, sub: wholeText }),
    size: "payload",
    body: z.strictObject({
      resolution: z.discriminatedUnion("as", [
        z.strictObject({ as: z.literal("confirmed"), value: value.exactOptional() }),
        z.strictObject({ as: z.literal("failed"), error: value.exactOptional() }),
        z.strictObject({ as: z.literal("retry") }),
        z.strictObject({ as: z.literal("observe"), inMs: spanMs.exactOptional() }),
        z.strictObject({ as: z.literal("compensate"), value: value.exactOptional() }),
      ]),
      reason: text.min(1),
      by: name.exactOptional(),
    }),
    answer: z.strictObject({}),
    errors: [
      "TAPE_RUN_NOT_FOUND",
      "TAPE_ILLEGAL_TRANSITION",
      "TAPE_NO_OBSERVER",
      "TAPE_NO_COMPENSATE",
      "TAPE_RUN_ENDED",
    ],
  },
  "gates.list": {
    method: "GET",
    path: "/v1/gates",
    role: "reader",
    repeat: "read",
    summary: "Lists gates, oldest first; pass next as after for the next page",
    query: z.strictObject({
      run: name.exactOptional(),
      open: flagText.exactOptional(),
      after: text.exactOptional(),
      limit: wholeText.exactOptional(),
    }),
    answer: z.strictObject({ gates: z.array(gateRow), more, next: text.exactOptional() }),
  },
  "timers.list": {
    method: "GET",
    path: "/v1/timers",
    role: "reader",
    repeat: "read",
    summary: "Lists timers of runs",
    query: z.strictObject({ run: name.exactOptional(), limit: wholeText.exactOptional() }),
    answer: z.strictObject({ timers: z.array(timerRow) }),
  },
  "businessKeys.get": {
    method: "GET",
    path: "/v1/business-keys",
    role: "reader",
    repeat: "read",
    summary: "Finds the effect that owns a business key",
    query: z.strictObject({ scope: name, businessKey: name }),
    answer: z.strictObject({ businessKey: businessKeyRow.optional() }),
  },
});
