import { z } from "zod";
import { defined } from "../../base/defined.ts";
import { jsonTool, type Tool } from "../tool.ts";
import { audit, durationMs, jsonValue, position, runId } from "./fields.ts";

const operator = { role: "operator" } as const;
const change = { readOnlyHint: false, openWorldHint: true } as const;
const maxPositions = 1_000;

const answerGate = jsonTool(
  {
    ...{ ...operator, name: "answer_gate", title: "Answer a gate" },
    annotations: { ...change, destructiveHint: true, idempotentHint: true },
    description:
      "Answers an open gate, for instance an approval. Needs the binds that list_gates showed (null if it showed null): " +
      "if the gate binds another call by now, the answer is refused (TAPE_GATE_STALE). You cannot approve a call of a " +
      "run that your own token started (TAPE_SELF_APPROVAL).",
    args: z.strictObject({
      run: runId,
      gate: z.string().min(1).max(512),
      binds: z.string().max(512).nullable(),
      value: jsonValue.describe('the answer, as the gate\'s payload asks for it, such as { "approved": true }'),
      ...audit,
    }),
  },
  async ({ run, gate, binds, value, by, reason }, { api, signal }) => {
    const body = { name: gate, value, by, reason, mustMatch: true as const, ...(binds !== null && { binds }) };
    return { sent: await api.call("runs.signal", { params: { id: run }, body }, { signal }) };
  },
);

const resolveEffect = jsonTool(
  {
    ...{ ...operator, name: "resolve_effect", title: "Resolve an effect in doubt" },
    annotations: { ...change, destructiveHint: true, idempotentHint: false },
    description:
      "Settles an effect of list_doubts: confirmed (it happened, with value as its result), failed (it did not happen), " +
      "retry (send it again), observe (ask the system again), compensate (reverse it). Only after you have evidence: a " +
      "wrong confirmed or retry loses or repeats a payment.",
    args: z.strictObject({
      run: runId,
      pos: position.describe("position of the effect"),
      sub: position.default(0).describe("0: the effect, 1: its compensation"),
      as: z.enum(["confirmed", "failed", "retry", "observe", "compensate"]),
      value: jsonValue.optional().describe("the effect's result, with confirmed or compensate"),
      error: jsonValue.optional().describe("why it failed, with failed"),
      ...audit,
    }),
  },
  async ({ run, pos, sub, as, value, error, by, reason }, { api, signal }) => {
    const given = as === "failed" ? defined({ error }) : as === "retry" || as === "observe" ? {} : defined({ value });
    const resolution = { as, ...given } as never;
    await api.call("effects.resolve", { params: { id: run, pos, sub }, body: { resolution, by, reason } }, { signal });
    return { resolved: { run, pos, sub, as } };
  },
);

const redrive = jsonTool(
  {
    ...{ ...operator, name: "redrive", title: "Resume a stuck run" },
    annotations: { ...change, destructiveHint: false, idempotentHint: true },
    description: "Resumes a STUCK run, at once or after inMs. First find out why it is stuck, with get_run.",
    args: z.strictObject({ run: runId, inMs: durationMs.optional(), ...audit }),
  },
  async ({ run, ...body }, { api, signal }) => {
    await api.call("runs.redrive", { params: { id: run }, body: defined(body) as never }, { signal });
    return { redriven: run };
  },
);

const cancelRun = jsonTool(
  {
    ...{ ...operator, name: "cancel_run", title: "Cancel a run" },
    annotations: { ...change, destructiveHint: true, idempotentHint: true },
    description:
      "Requests that a run stops. It cleans up first: effects that it made are compensated where they can be.",
    args: z.strictObject({ run: runId, ...audit }),
  },
  async ({ run, by, reason }, { api, signal }) => {
    // The same cancellation again, by the same author, is the first one.
    const body = { by, reason, key: "mcp" };
    return { requested: await api.call("runs.cancel", { params: { id: run }, body }, { signal }) };
  },
);

const fork = jsonTool(
  {
    ...{ ...operator, name: "fork", title: "Fork a run" },
    annotations: { ...change, destructiveHint: true, idempotentHint: true },
    description:
      "Starts a new run from a position of another. Call fork_plan first: each effect that would happen a second time " +
      "must be named in repeat by its position, otherwise the fork is refused.",
    args: z.strictObject({
      run: runId,
      id: runId.describe("id of the new run"),
      at: position.optional(),
      repeat: z.array(position).max(maxPositions).optional(),
      keepCompensated: z.array(position).max(maxPositions).optional(),
      ...audit,
    }),
  },
  async ({ run, ...body }, { api, signal }) =>
    api.call("runs.fork", { params: { id: run }, body: defined(body) as never }, { signal }),
);

export const operateTools: readonly Tool[] = [answerGate, resolveEffect, redrive, cancelRun, fork];
