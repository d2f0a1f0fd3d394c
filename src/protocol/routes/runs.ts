import { z } from "zod";
import { group } from "../route.ts";
import {
  amounts,
  flagText,
  itemResult,
  labels,
  labelsText,
  labelText,
  listText,
  maxSpecs,
  more,
  name,
  record,
  signal,
  spanMs,
  startFields,
  text,
  value,
  whole,
  wholeText,
} from "../shapes.ts";
import { budgetRow, effectRow, runProgress, runView, termView } from "../views.ts";

const byId = z.strictObject({ id: name });
const runStart = z.strictObject({
  id: name.exactOptional(),
  workflow: name,
  input: value.exactOptional(),
  version: text.exactOptional(),
  labels: labels.exactOptional(),
  budget: amounts.exactOptional(),
  ...startFields,
});
/** `id`: of the run that took the start, see `unique` and `debounce`. */
const runStarted = { id: name, journal: z.int().positive(), fresh: z.boolean() };
const audit = { reason: text.min(1), by: name.exactOptional() };

/** Runs, for programs that start them and for operators. */
export const runs = group({
  "runs.start": {
    method: "POST",
    path: "/v1/runs",
    role: "starter",
    repeat: "key",
    summary:
      "Starts a run, or finds it if it exists. The caller chooses the id; without one the Idempotency-Key is the id. " +
      "With signals it also sends them, in the same transaction; a run that exists may then have another input. " +
      "With a reason the audit log records the start",
    size: "payload",
    body: runStart.extend({ by: name.exactOptional(), reason: text.min(1).exactOptional() }),
    // The hint repeats the workflow's name. A bound on it would fail a call that has succeeded.
    answer: z.strictObject({ ...runStarted, hint: z.string().exactOptional() }),
    errors: ["TAPE_RUN_CONFLICT", "TAPE_RUN_GONE", "TAPE_RUN_LIVE", "TAPE_QUEUE_UNKNOWN", "TAPE_NOT_ENCODABLE"],
  },
  "runs.startAll": {
    method: "POST",
    path: "/v1/runs/batch",
    role: "starter",
    repeat: "same",
    summary: "Starts many runs in one call; each has an id and gets its own result",
    size: "batch",
    body: z.strictObject({
      runs: z
        .array(runStart.extend({ id: name }))
        .max(maxSpecs)
        .min(1),
    }),
    answer: z.strictObject({ results: z.array(itemResult(runStarted)) }),
  },
  "runs.list": {
    method: "GET",
    path: "/v1/runs",
    role: "reader",
    repeat: "read",
    summary:
      "Lists runs, newest first; before continues a listing. Filters: start or end time (milliseconds since 1970, since " +
      "inclusive, until exclusive), in doubt, prefix of the id (ordered by id), descendants of a root (oldest first), " +
      "labels as key:value,… (all keys, one of the values of each; newest first, also with a prefix)",
    query: z.strictObject({
      workflow: name.exactOptional(),
      status: listText.exactOptional(),
      labels: labelsText.exactOptional(),
      label: labelText.exactOptional(),
      startedSince: wholeText.exactOptional(),
      startedUntil: wholeText.exactOptional(),
      endedSince: wholeText.exactOptional(),
      endedUntil: wholeText.exactOptional(),
      inDoubt: flagText.exactOptional(),
      prefix: text.exactOptional(),
      below: wholeText.exactOptional(),
      before: wholeText.exactOptional(),
      limit: wholeText.exactOptional(),
    }),
    answer: z.strictObject({ runs: z.array(runView), more }),
    errors: ["TAPE_NOT_FOUND"],
  },
  "runs.get": {
    method: "GET",
    path: "/v1/runs/{id}",
    role: "reader",
    repeat: "read",
    summary: "Reads one run: status, outcome, error, lease",
    params: byId,
    answer: runView,
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.result": {
    method: "GET",
    path: "/v1/runs/{id}/result",
    role: "reader",
    repeat: "read",
    summary: "Reads the run's progress; with waitMs the response waits for the end, at most that long (30 000)",
    params: byId,
    query: z.strictObject({ waitMs: wholeText.exactOptional() }),
    answer: runProgress,
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.journal": {
    method: "GET",
    path: "/v1/runs/{id}/journal",
    role: "reader",
    repeat: "read",
    summary: "Reads records of the run's journal from a seq on; inbox=true reads its notes",
    params: byId,
    query: z.strictObject({
      from: wholeText.exactOptional(),
      limit: wholeText.exactOptional(),
      inbox: flagText.exactOptional(),
    }),
    answer: z.strictObject({ records: z.array(record), more }),
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.follow": {
    method: "GET",
    path: "/v1/runs/{id}/journal/stream",
    role: "reader",
    repeat: "read",
    summary: "Streams the run's records from a seq on, one per line; ends with the run. Resume from the last seq + 1",
    params: byId,
    query: z.strictObject({ from: wholeText.exactOptional() }),
    answer: record,
    stream: true,
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.terms": {
    method: "GET",
    path: "/v1/runs/{id}/terms",
    role: "reader",
    repeat: "read",
    summary: "Reads the run's term history: each holder, from when to when, and why the term started and ended",
    params: byId,
    answer: z.strictObject({ terms: z.array(termView) }),
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.budgets": {
    method: "GET",
    path: "/v1/runs/{id}/budgets",
    role: "reader",
    repeat: "read",
    summary: "Reads the run's budgets: caps, reserved and spent amounts, in millionths of the unit",
    params: byId,
    answer: z.strictObject({ budgets: z.array(budgetRow) }),
  },
  "runs.tree": {
    method: "GET",
    path: "/v1/runs/{id}/tree",
    role: "reader",
    repeat: "read",
    summary: "Reads the run's whole tree from its root, oldest first, and its obligations in the order of compensation",
    params: byId,
    query: z.strictObject({ limit: wholeText.exactOptional() }),
    answer: z.strictObject({
      root: name,
      runs: z.array(
        runView
          .pick({ id: true, journal: true, parent: true, workflow: true, status: true, cause: true })
          .extend(runView.pick({ outcome: true, error: true }).shape)
          .extend({ createdAt: z.number(), endedAt: z.number().nullable(), parentPos: whole.nullable() }),
      ),
      obligations: z.array(effectRow),
      more: z.boolean(),
    }),
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.signal": {
    method: "POST",
    path: "/v1/runs/{id}/signals",
    role: "starter",
    repeat: "key",
    summary: "Sends a signal to the run's gate; a repeated key is reported as a duplicate",
    params: byId,
    size: "payload",
    body: signal,
    answer: z.strictObject({ n: whole, duplicate: z.boolean() }),
    errors: [
      "TAPE_RUN_NOT_FOUND",
      "TAPE_RUN_ENDED",
      "TAPE_BAD_GATE_VALUE",
      "TAPE_GATE_STALE",
      "TAPE_NOT_APPROVER",
      "TAPE_SELF_APPROVAL",
    ],
  },
  "runs.cancel": {
    method: "POST",
    path: "/v1/runs/{id}/cancel",
    role: "starter",
    repeat: "key",
    summary: "Requests that the run stops and cleans up",
    params: byId,
    body: z.strictObject({ ...audit, key: name.exactOptional() }),
    answer: z.strictObject({ n: whole }),
    errors: ["TAPE_RUN_NOT_FOUND", "TAPE_RUN_ENDED"],
  },
  "runs.takeover": {
    method: "POST",
    path: "/v1/runs/{id}/takeover",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Fences the run's holder and releases the run; with onlyStale only if the lease has expired",
    params: byId,
    body: z.strictObject({ ...audit, onlyStale: z.boolean().exactOptional() }),
    answer: z.strictObject({}),
    errors: ["TAPE_RUN_NOT_FOUND", "TAPE_LEASE_HELD"],
  },
  "runs.redrive": {
    method: "POST",
    path: "/v1/runs/{id}/redrive",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Resumes a stuck run and fences its holder: at once, or by a timer after inMs",
    params: byId,
    body: z.strictObject({ ...audit, inMs: spanMs.exactOptional() }),
    answer: z.strictObject({}),
    errors: ["TAPE_RUN_NOT_FOUND", "TAPE_ILLEGAL_TRANSITION"],
  },
});
