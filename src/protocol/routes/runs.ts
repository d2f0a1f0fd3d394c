import { z } from "zod";
import { group } from "../route.ts";
import { amounts, flagText, labels, listText, name, record, signal, text, value, whole, wholeText } from "../shapes.ts";
import { budgetRow, runProgress, runView, termView } from "../views.ts";

const byId = z.strictObject({ id: name });
const person = { reason: text.min(1), by: name.optional() };

/** Runs, as people and programs that start them see them. */
export const runs = group({
  "runs.start": {
    method: "POST",
    path: "/v1/runs",
    role: "starter",
    repeat: "key",
    summary: "Starts a run, or finds the same one: the id is the caller's; without one the Idempotency-Key is the id",
    body: z.strictObject({
      id: name.optional(),
      workflow: name,
      input: value.optional(),
      version: text.optional(),
      labels: labels.optional(),
      budget: amounts.optional(),
    }),
    answer: z.strictObject({ id: name, journal: z.int().positive(), fresh: z.boolean() }),
    errors: ["TAPE_RUN_CONFLICT", "TAPE_RUN_GONE", "TAPE_NOT_ENCODABLE"],
  },
  "runs.list": {
    method: "GET",
    path: "/v1/runs",
    role: "reader",
    repeat: "read",
    summary: "Runs, newest first; before continues a listing",
    query: z.strictObject({
      workflow: name.optional(),
      status: listText.optional(),
      label: z
        .string()
        .regex(/^[^:]+:.*$/, "is key:value")
        .optional(),
      before: wholeText.optional(),
      limit: wholeText.optional(),
    }),
    answer: z.strictObject({ runs: z.array(runView) }),
  },
  "runs.get": {
    method: "GET",
    path: "/v1/runs/{id}",
    role: "reader",
    repeat: "read",
    summary: "One run: status, outcome, lease",
    params: byId,
    answer: runView,
    errors: ["TAPE_RUN_UNKNOWN"],
  },
  "runs.result": {
    method: "GET",
    path: "/v1/runs/{id}/result",
    role: "reader",
    repeat: "read",
    summary: "How far the run has come; with waitMs the answer waits for the end, at most that long (30 000)",
    params: byId,
    query: z.strictObject({ waitMs: wholeText.optional() }),
    answer: runProgress,
    errors: ["TAPE_RUN_UNKNOWN"],
  },
  "runs.journal": {
    method: "GET",
    path: "/v1/runs/{id}/journal",
    role: "reader",
    repeat: "read",
    summary: "Records of the run's journal from a seq on; inbox=true reads its notes",
    params: byId,
    query: z.strictObject({ from: wholeText.optional(), limit: wholeText.optional(), inbox: flagText.optional() }),
    answer: z.strictObject({ records: z.array(record) }),
    errors: ["TAPE_RUN_UNKNOWN"],
  },
  "runs.follow": {
    method: "GET",
    path: "/v1/runs/{id}/journal/stream",
    role: "reader",
    repeat: "read",
    summary:
      "The run's records from a seq on, as they come, one a line; ends with the run. Resume from the last seq + 1",
    params: byId,
    query: z.strictObject({ from: wholeText.optional() }),
    answer: record,
    stream: true,
    errors: ["TAPE_RUN_UNKNOWN"],
  },
  "runs.terms": {
    method: "GET",
    path: "/v1/runs/{id}/terms",
    role: "reader",
    repeat: "read",
    summary: "Who held the run, from when to when, and why each term began and ended",
    params: byId,
    answer: z.strictObject({ terms: z.array(termView) }),
    errors: ["TAPE_RUN_UNKNOWN"],
  },
  "runs.budgets": {
    method: "GET",
    path: "/v1/runs/{id}/budgets",
    role: "reader",
    repeat: "read",
    summary: "Caps of the run, what is reserved and what is spent, in millionths of the unit",
    params: byId,
    answer: z.strictObject({ budgets: z.array(budgetRow) }),
  },
  "runs.signal": {
    method: "POST",
    path: "/v1/runs/{id}/signals",
    role: "starter",
    repeat: "key",
    summary: "Sends a signal to the run's gate; a repeated key is answered as a duplicate",
    params: byId,
    body: signal,
    answer: z.strictObject({ n: whole, duplicate: z.boolean() }),
    errors: ["TAPE_RUN_UNKNOWN", "TAPE_RUN_ENDED"],
  },
  "runs.cancel": {
    method: "POST",
    path: "/v1/runs/{id}/cancel",
    role: "starter",
    repeat: "key",
    summary: "Asks the run to stop and to clean up",
    params: byId,
    body: z.strictObject(person),
    answer: z.strictObject({ n: whole }),
    errors: ["TAPE_RUN_UNKNOWN", "TAPE_RUN_ENDED"],
  },
  "runs.redrive": {
    method: "POST",
    path: "/v1/runs/{id}/redrive",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Lets a stuck run go on from where it was; whoever holds it is fenced",
    params: byId,
    body: z.strictObject(person),
    answer: z.strictObject({}),
    errors: ["TAPE_RUN_UNKNOWN", "TAPE_ILLEGAL_TRANSITION"],
  },
});
