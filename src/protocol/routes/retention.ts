import { z } from "zod";
import { keptReasons } from "../../model/retention.ts";
import { group } from "../route.ts";
import { more, name, text, time, whole, wholeText } from "../shapes.ts";

const pass = z.strictObject({
  at: time,
  runs: whole,
  bytes: whole,
  files: whole,
  kept: z.partialRecord(z.enum(keptReasons), whole),
  error: z.string().exactOptional(),
});

/** With the policy by which runs were dated, and the store's epoch. */
const state = z.strictObject({
  policy: z.string(),
  rules: z.string().exactOptional(),
  epoch: whole,
  datedAt: z.int(),
  datedJournal: whole,
  pending: z.strictObject({ name: z.string(), until: time }).exactOptional(),
  abandoned: whole.exactOptional(),
  last: pass.exactOptional(),
});

const archivedRun = z.strictObject({
  id: z.string(),
  archive: z.string(),
  prunedAt: time,
  createdAt: time.nullable(),
  endedAt: time.nullable(),
});

/** What is kept for how long, and where it went. */
export const retention = group({
  "retention.get": {
    method: "GET",
    path: "/v1/retention",
    role: "reader",
    repeat: "read",
    summary: "What retention would archive and delete now, or within a time, by workflow; and its last pass",
    query: z.strictObject({ withinMs: wholeText.exactOptional() }),
    answer: z.strictObject({
      due: whole,
      lagMs: z.number(),
      workflows: z.array(z.strictObject({ workflow: z.string(), trees: whole, endedAt: time, dueAt: time })),
      state: state.exactOptional(),
    }),
  },
  "retention.run": {
    method: "POST",
    path: "/v1/retention/run",
    role: "operator",
    repeat: "key",
    manual: true,
    summary: "Wakes the reactor retention, wherever it runs",
    body: z.strictObject({ reason: text.min(1), by: name.exactOptional() }),
    answer: z.strictObject({}),
  },
  "runs.erase": {
    method: "POST",
    path: "/v1/runs/{id}/erase",
    role: "admin",
    repeat: "same",
    manual: true,
    summary:
      "Erases the payloads of a run that has ended, part by part: call it with next as after until there is none. With tree, of all runs of its tree",
    params: z.strictObject({ id: name }),
    body: z.strictObject({
      reason: text.min(1),
      by: name.exactOptional(),
      tree: z.boolean().exactOptional(),
      after: text.exactOptional(),
    }),
    answer: z.strictObject({
      records: whole,
      runs: whole.exactOptional(),
      next: z.string().exactOptional(),
      already: z.literal(true).exactOptional(),
      copies: z.array(z.string()).exactOptional(),
    }),
    errors: ["TAPE_RUN_NOT_FOUND", "TAPE_RUN_GONE", "TAPE_RUN_LIVE", "TAPE_RUN_UNSETTLED"],
  },
  "archived.list": {
    method: "GET",
    path: "/v1/archived",
    role: "reader",
    repeat: "read",
    summary: "Lists runs that were archived and deleted, by id, with the archive's file; above continues a listing",
    query: z.strictObject({ id: text.exactOptional(), above: text.exactOptional(), limit: wholeText.exactOptional() }),
    answer: z.strictObject({ runs: z.array(archivedRun), more }),
  },
});
