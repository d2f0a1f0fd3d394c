import { z } from "zod";
import { group } from "../route.ts";
import { flagText, listText, name, text, value, wholeText } from "../shapes.ts";
import { claimRow, effectRow, gateRow, timerRow } from "../views.ts";

/** What runs have open: effects and obligations, gates, timers, business keys. */
export const doubts = group({
  "effects.list": {
    method: "GET",
    path: "/v1/effects",
    role: "reader",
    repeat: "read",
    summary: "Effects, or with role=inverse obligations, by status and age",
    query: z.strictObject({
      run: name.optional(),
      item: wholeText.optional(),
      role: z.enum(["act", "inverse"]).optional(),
      status: listText.optional(),
      minAgeMs: wholeText.optional(),
      limit: wholeText.optional(),
    }),
    answer: z.strictObject({ effects: z.array(effectRow) }),
  },
  "effects.resolve": {
    method: "POST",
    path: "/v1/runs/{id}/effects/{pos}/{sub}/resolve",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "A person settles what nobody knows: it happened, it failed, or have it done again",
    params: z.strictObject({ id: name, pos: wholeText, sub: wholeText }),
    body: z.strictObject({
      resolution: z.discriminatedUnion("as", [
        z.strictObject({ as: z.literal("happened"), value: value.optional() }),
        z.strictObject({ as: z.literal("failed"), error: value.optional() }),
        z.strictObject({ as: z.literal("again") }),
      ]),
      reason: text.min(1),
      by: name.optional(),
    }),
    answer: z.strictObject({}),
    errors: ["TAPE_RUN_UNKNOWN", "TAPE_ILLEGAL_TRANSITION", "TAPE_NO_WORKER"],
  },
  "gates.list": {
    method: "GET",
    path: "/v1/gates",
    role: "reader",
    repeat: "read",
    summary: "Gates: what waits for a person",
    query: z.strictObject({ run: name.optional(), open: flagText.optional(), limit: wholeText.optional() }),
    answer: z.strictObject({ gates: z.array(gateRow) }),
  },
  "timers.list": {
    method: "GET",
    path: "/v1/timers",
    role: "reader",
    repeat: "read",
    summary: "Timers of runs",
    query: z.strictObject({ run: name.optional(), limit: wholeText.optional() }),
    answer: z.strictObject({ timers: z.array(timerRow) }),
  },
  "claims.get": {
    method: "GET",
    path: "/v1/claims",
    role: "reader",
    repeat: "read",
    summary: "Which act owns a business key",
    query: z.strictObject({ scope: name, businessKey: name }),
    answer: z.strictObject({ claim: claimRow.optional() }),
  },
});
