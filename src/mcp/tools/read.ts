import { z } from "zod";
import { defined } from "../../base/defined.ts";
import { TapeError } from "../../model/errors.ts";
import { runStatus } from "../../protocol/views.ts";
import { effectCursor, gateCursor } from "../../store/list-cursors.ts";
import { excerpt, pageOf, placeOf } from "../paging.ts";
import { jsonTool, readOnly, type Tool } from "../tool.ts";
import { conversationPage } from "./conversation.ts";
import { cursor, label, labels, limitOf, runId } from "./fields.ts";
import { journalPage, namesOf } from "./run-pages.ts";

const reader = { role: "reader", annotations: readOnly } as const;
/** Terms of a lease that explain where it is: earlier ones are history. */
const maxTerms = 10;

const listRuns = jsonTool(
  {
    ...{ ...reader, name: "list_runs", title: "List runs" },
    description:
      "Runs of this tenant, newest first, with status, outcome and error. Filter by workflow, status, labels, id prefix, or " +
      "inDoubt: true for runs with an effect of which nothing confirms whether it happened.",
    args: z.strictObject({
      workflow: z.string().min(1).max(512).optional(),
      status: z.array(runStatus).min(1).max(12).optional(),
      label: label.optional(),
      labels: labels.optional(),
      prefix: z.string().max(512).optional().describe("start of the run's id"),
      inDoubt: z.boolean().optional(),
      limit: limitOf(50),
      cursor,
    }),
  },
  async ({ cursor: given, label: pair, limit, ...filter }, { api }) => {
    const place = placeOf(given);
    const query = {
      ...defined(filter),
      ...(pair !== undefined && { label: pair }),
      ...(place.after !== undefined && { before: Number(place.after) }),
      limit,
    };
    const { runs, more = false } = await api.call("runs.list", { query: query as never });
    const rows = runs.map(({ journal, id, workflow, status, cause, labels, ...run }) => ({
      ...{ run: id, journal, workflow, status, cause, labels, createdAt: run.createdAt, endedAt: run.endedAt },
      outcome: excerpt(run.outcome, "get_run", 1_000),
      ...defined({ error: run.error }),
      holder: run.lease.label,
    }));
    return pageOf(place, { field: "runs", rows, more, behind: ({ journal }) => String(journal) });
  },
);

const getRun = jsonTool(
  {
    ...{ ...reader, name: "get_run", title: "Read a run" },
    description:
      "One run: status, outcome, error, lease, and its journal a page at a time (oldest first). inbox: true reads the notes " +
      "that others sent to it instead: signals, cancellations, late evidence.",
    args: z.strictObject({ run: runId, inbox: z.boolean().default(false), cursor }),
  },
  async ({ run, inbox, cursor: given }, { api }) => {
    if (given !== undefined) return journalPage(api, { run, inbox, cursor: given });
    const { outcome, ...view } = await api.call("runs.get", { params: { id: run } });
    const others = { run: { ...view, outcome: excerpt(outcome, "the last record of the journal") } };
    return journalPage(api, { run, inbox, cursor: given, others });
  },
);

const conversation = jsonTool(
  {
    ...{ ...reader, name: "conversation", title: "Read a run's conversation" },
    description:
      "The conversation of an agent's run, rebuilt from its journal: model calls with new messages and answers, tool " +
      "calls with outcomes, approvals and child runs, in order.",
    args: z.strictObject({ run: runId, cursor }),
  },
  ({ run, cursor: given }, { api }) => conversationPage(api, run, given),
);

const listGates = jsonTool(
  {
    ...{ ...reader, name: "list_gates", title: "List open gates" },
    description:
      "Open gates, oldest first: what waits for an answer, with its payload. binds names the exact effect call that an " +
      "answer approves; pass it to answer_gate unchanged. forAgents: the tool signal may answer it.",
    args: z.strictObject({ run: runId.optional(), limit: limitOf(50), cursor }),
  },
  async ({ run, limit, cursor: given }, { api }) => {
    const place = placeOf(given);
    const { gates, more = false } = await api.call("gates.list", {
      query: { open: true, limit, ...defined({ run, after: place.after }) },
    });
    const names = await namesOf(
      api,
      gates.map((gate) => gate.run),
    );
    const rows = gates.map(({ run: journal, pos, name, binds, payload, approvers, callback, openedAt }) => ({
      ...{ run: names.get(journal) ?? null, journal, pos, gate: name, binds, payload, approvers, openedAt },
      forAgents: (approvers as { agents?: unknown } | null)?.agents === true,
      ...(callback !== undefined && { callback }),
    }));
    const behind = ({ openedAt, journal, pos }: (typeof rows)[number]) => gateCursor({ openedAt, run: journal, pos });
    return pageOf(place, { field: "gates", rows, more, behind });
  },
);

const inDoubt = ["UNKNOWN", "STUCK"] as const;

const listInDoubt = jsonTool(
  {
    ...{ ...reader, name: "list_doubts", title: "List effects in doubt" },
    description:
      "Effects and compensations that are UNKNOWN or STUCK: they may have happened, and nothing confirms it. With run, " +
      "also what was observed, late evidence, and the next observation. Ask the system that the effect called before " +
      "you resolve one.",
    args: z.strictObject({ run: runId.optional(), limit: limitOf(20), cursor }),
  },
  async ({ run, limit, cursor: given }, { api }) => {
    const place = placeOf(given);
    if (run !== undefined) {
      const { inDoubt: rows, more } = await api.call("inDoubt.list", { query: { run, limit: 200 } });
      const at = Number(place.after ?? 0);
      const left = rows.map((row, k) => ({ ...row, n: k + 1 })).slice(at);
      return pageOf(place, { field: "effects", rows: left, more, behind: ({ n }) => String(n) });
    }
    const { effects, more = false } = await api.call("effects.list", {
      query: { status: [...inDoubt], limit, ...defined({ after: place.after }) },
    });
    const names = await namesOf(
      api,
      effects.map((effect) => effect.run),
    );
    const rows = effects.map((effect) => ({ ...effect, journal: effect.run, run: names.get(effect.run) ?? null }));
    const behind = ({ journal, pos, sub }: (typeof rows)[number]) => effectCursor({ run: journal, pos, sub });
    return pageOf(place, { field: "effects", rows, more, behind });
  },
);

const explainLease = jsonTool(
  {
    ...{ ...reader, name: "explain_lease", title: "Explain a lease" },
    description:
      "Which process holds a run or a named lease, under which token, for how long, its last progress, and its latest " +
      "terms with the reasons why they started and ended. Give run or name.",
    args: z.strictObject({ run: runId.optional(), name: z.string().min(1).max(512).optional() }),
  },
  async ({ run, name }, { api }) => {
    if ((run === undefined) === (name === undefined)) {
      throw new TapeError("TAPE_BAD_INPUT", "give run, or the name of a lease", { field: "run" });
    }
    const [lease, { terms }] =
      run !== undefined
        ? await Promise.all([
            api.call("runs.get", { params: { id: run } }).then((view) => view.lease),
            api.call("runs.terms", { params: { id: run } }),
          ])
        : await Promise.all([
            api.call("leases.get", { params: { name: name! } }),
            api.call("leases.terms", { params: { name: name! } }),
          ]);
    return { lease, terms: terms.slice(-maxTerms), earlierTerms: Math.max(0, terms.length - maxTerms) };
  },
);

const forkPlan = jsonTool(
  {
    ...{ ...reader, name: "fork_plan", title: "Plan a fork" },
    description:
      "What a fork of a run at a position would keep, run again, and repeat upstream: alreadyHappened are the effects " +
      "that would happen a second time. Changes nothing.",
    args: z.strictObject({ run: runId, at: z.int().nonnegative().max(Number.MAX_SAFE_INTEGER).optional(), cursor }),
  },
  async ({ run, at, cursor: given }, { api }) => {
    const plan = await api.call("runs.forkPlan", { params: { id: run }, query: defined({ at }) });
    const page = pageOf(placeOf(given), { field: "plans", rows: [plan], more: false, behind: () => "" });
    return "plans" in page ? plan : page;
  },
);

export const readTools: readonly Tool[] = [
  ...[listRuns, getRun, conversation, listGates, listInDoubt, explainLease, forkPlan],
];
