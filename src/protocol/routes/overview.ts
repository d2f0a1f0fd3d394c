import { z } from "zod";
import { sinkProblems } from "../../model/sink-state.ts";
import { cycleSteps } from "../queue-views.ts";
import { group } from "../route.ts";
import { listText, maxSpecs, name, text, value, whole, wholeText } from "../shapes.ts";
import { budgetRow, runStatus } from "../views.ts";

const byId = z.strictObject({ id: name });
/** Counted up to a bound; `more`: there are others. */
const counted = z.strictObject({ count: whole, more: z.boolean() });
const runRate = z.strictObject({ at: z.number(), started: whole, ended: whole, failed: whole, more: z.boolean() });
const operation = { pos: whole, what: z.string(), name: z.string() };
const forkPlan = z.strictObject({
  at: whole,
  kept: z.array(z.strictObject(operation)),
  rerun: z.array(z.strictObject(operation)),
  alreadyHappened: z.array(
    z.strictObject({ ...operation, repeatable: z.boolean(), args: value, businessKey: z.string().optional() }),
  ),
  compensated: z.array(z.strictObject({ ...operation, obligation: z.string() })),
  notCompensated: z.array(z.strictObject(operation)),
});

/** The overview, and forks: what the dashboard requests besides the lists. */
export const overview = group({
  census: {
    method: "GET",
    path: "/v1/census",
    role: "reader",
    repeat: "read",
    summary:
      "Reads the figures of /metrics in one query: due work and its lag by reactor, runs, effects in doubt, leases",
    answer: z.strictObject({
      reactors: z.array(z.strictObject({ reactor: name, due: whole, lagMs: z.number() })),
      runs: z.array(z.strictObject({ status: runStatus, count: whole })),
      inDoubt: z.array(
        z.strictObject({
          role: z.enum(["effect", "compensation"]),
          status: z.enum(["UNKNOWN", "STUCK"]),
          count: whole,
          ageMs: z.number(),
        }),
      ),
      held: z.array(z.strictObject({ kind: z.enum(["run", "item", "name"]), count: whole })),
      feedBlockedMs: z.number(),
    }),
  },
  overview: {
    method: "GET",
    path: "/v1/overview",
    role: "reader",
    repeat: "read",
    summary:
      "Counts runs by status, what needs an operator, and leases, each up to a bound; lists runs that may hang, " +
      "workflows, effects and queues with work that no process serves, cycles of queues, and sinks that need an operator",
    answer: z.strictObject({
      now: z.number(),
      runs: z.array(z.strictObject({ status: runStatus, ...counted.shape })),
      failedRecently: counted,
      inDoubt: counted,
      obligations: counted,
      gates: counted,
      leases: z.strictObject({ held: whole, expired: whole, stalling: whole, more: z.boolean() }),
      hung: z.array(z.strictObject({ run: name, forMs: z.number(), owner: z.string().nullable() })),
      unserved: z.array(
        z.strictObject({
          ...{ workflow: name, build: name.exactOptional() },
          runs: whole,
          suggestion: name.exactOptional(),
        }),
      ),
      unservedEffects: z.array(z.strictObject({ effect: name, items: whole, suggestion: name.exactOptional() })),
      unservedQueues: z.array(z.strictObject({ queue: name, runs: whole, suggestion: name.exactOptional() })),
      queueCycles: z.array(z.strictObject({ steps: cycleSteps })),
      sinks: z.array(
        z.strictObject({
          ...{ sink: name, problems: z.array(z.enum(sinkProblems)), lagMs: z.number() },
          ...{ openLetters: whole, keptRuns: whole, note: z.string().exactOptional() },
        }),
      ),
    }),
  },
  "overview.history": {
    method: "GET",
    path: "/v1/overview/history",
    role: "reader",
    repeat: "read",
    summary: "Counts runs started and ended over time, and reports the lag of each reactor as measured by this server",
    query: z.strictObject({ minutes: wholeText.exactOptional(), buckets: wholeText.exactOptional() }),
    answer: z.strictObject({
      now: z.number(),
      bucketMs: z.number(),
      runs: z.array(runRate),
      reactors: z.array(
        z.strictObject({
          reactor: z.string(),
          samples: z.array(z.strictObject({ at: z.number(), lagMs: z.number() })),
        }),
      ),
    }),
  },
  "runs.rate": {
    method: "GET",
    path: "/v1/rate",
    role: "reader",
    repeat: "read",
    summary: "Counts the runs that started and ended in each interval since a time, each up to a bound",
    query: z.strictObject({ since: wholeText, sizeMs: wholeText, buckets: wholeText }),
    answer: z.strictObject({ rate: z.array(runRate) }),
  },
  "budgets.list": {
    method: "GET",
    path: "/v1/budgets",
    role: "reader",
    repeat: "read",
    summary:
      "Lists budgets of runs that have not ended: sums by unit, and those nearest to their caps; in millionths of the unit",
    query: z.strictObject({ limit: wholeText.exactOptional() }),
    answer: z.strictObject({
      budgets: z.array(z.strictObject({ ...budgetRow.shape, runId: name, workflow: z.string(), status: runStatus })),
      units: z.array(
        z.strictObject({ unit: z.string(), runs: whole, cap: whole.nullable(), reserved: whole, spent: whole }),
      ),
      more: z.boolean(),
    }),
  },
  "journals.names": {
    method: "GET",
    path: "/v1/journals",
    role: "reader",
    repeat: "read",
    summary: "Finds the run id or lease name of each of these journals; those that do not exist are missing",
    query: z.strictObject({ of: listText }),
    answer: z.strictObject({ journals: z.array(z.strictObject({ journal: z.int(), name: z.string() })) }),
  },
  "runs.head": {
    method: "GET",
    path: "/v1/runs/{id}/head",
    role: "reader",
    repeat: "read",
    summary: "Counts the records of the run's journal, for readers that load it in windows",
    params: byId,
    answer: z.strictObject({ head: whole }),
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.forkPlan": {
    method: "GET",
    path: "/v1/runs/{id}/fork",
    role: "reader",
    repeat: "read",
    summary: "Shows what a fork at this position would keep, rerun and repeat upstream; changes nothing",
    params: byId,
    query: z.strictObject({ at: wholeText.exactOptional() }),
    answer: forkPlan,
    errors: ["TAPE_RUN_NOT_FOUND", "TAPE_BAD_FORK_POINT"],
  },
  "runs.fork": {
    method: "POST",
    path: "/v1/runs/{id}/fork",
    role: "operator",
    repeat: "key",
    manual: true,
    summary:
      "Starts a new run from a position of another. Name in repeat each effect that would happen a second time. Without an id the Idempotency-Key is the id. With an input the new run gets that instead of the other run's",
    params: byId,
    size: "payload",
    body: z.strictObject({
      at: whole.exactOptional(),
      id: name.exactOptional(),
      repeat: z.array(whole).max(maxSpecs).exactOptional(),
      keepCompensated: z.array(whole).max(maxSpecs).exactOptional(),
      input: value.exactOptional(),
      reason: text.min(1),
      by: name.exactOptional(),
    }),
    answer: z.strictObject({ id: name }),
    errors: ["TAPE_RUN_NOT_FOUND", "TAPE_BAD_FORK_POINT", "TAPE_FORK_REPEATS", "TAPE_RUN_CONFLICT"],
  },
});
