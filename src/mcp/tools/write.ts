import { z } from "zod";
import { defined } from "../../base/defined.ts";
import { TapeError } from "../../model/errors.ts";
import { excerpt, maxResultChars } from "../paging.ts";
import { jsonTool, readOnly, type Tool, type ToolContext } from "../tool.ts";
import { audit, jsonValue, runId } from "./fields.ts";

const starter = { role: "starter" } as const;
/** A client gives up on a tool after a minute or so. */
const maxWaitMs = 60_000;
/** What the server waits in one call. */
const waitOnceMs = 15_000;

const startRun = jsonTool(
  {
    ...{ ...starter, name: "start_run", title: "Start a run" },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    description:
      "Starts a run of a workflow under an id that you choose. The same id again starts nothing and returns the run: " +
      "if you are not sure whether a call arrived, make it again with the same id and input.",
    args: z.strictObject({
      run: runId.describe("id of the new run, unique and meaningful, such as invoice-4711"),
      workflow: z.string().min(1).max(512),
      input: jsonValue.optional(),
      labels: z.record(z.string().min(1).max(512), z.string().max(512)).optional(),
      budget: z
        .record(z.string().min(1).max(512), z.int().nonnegative().max(Number.MAX_SAFE_INTEGER))
        .optional()
        .describe("caps by unit, in millionths"),
      queue: z.string().min(1).max(512).optional(),
      key: z.string().max(512).optional().describe("key within the queue"),
      ...audit,
    }),
  },
  async ({ run, ...spec }, { api, signal }) => {
    const body = { id: run, ...defined(spec) };
    const { id, fresh, hint } = await api.call("runs.start", { body: body as never }, { signal });
    return { run: id, started: fresh, ...defined({ hint }) };
  },
);

const awaitRun = jsonTool(
  {
    ...{ ...starter, name: "await_run", title: "Wait for a run" },
    annotations: readOnly,
    notifies: true,
    description:
      "Waits until a run has ended or is stuck, at most timeoutMs (up to 60000), and returns its status and outcome. " +
      "ended: false means that it still runs: call again.",
    args: z.strictObject({ run: runId, timeoutMs: z.int().min(0).max(maxWaitMs).default(30_000) }),
  },
  async ({ run, timeoutMs }, context) => {
    const { clock, signal, progress } = context;
    const startedAt = clock.mono();
    const waitedMs = () => Math.min(timeoutMs, Math.round(clock.mono() - startedAt));
    let found = await progressOf(context, run, 0);
    while (!found.ended && !(found.status === "STUCK" && found.idle) && waitedMs() < timeoutMs && !signal.aborted) {
      progress(waitedMs(), timeoutMs, `${run} is ${found.status}`);
      found = await progressOf(context, run, Math.min(waitOnceMs, timeoutMs - waitedMs()));
    }
    return found;
  },
);

async function progressOf({ api, signal }: ToolContext, run: string, waitMs: number) {
  const { status, ended, idle, outcome } = await api.call(
    "runs.result",
    { params: { id: run }, query: { waitMs } },
    { signal },
  );
  return { run, status, ended, idle, outcome: excerpt(outcome, "get_run, the last record", maxResultChars) };
}

const signal = jsonTool(
  {
    ...{ ...starter, name: "signal", title: "Answer a gate for agents" },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    description:
      "Sends a value to an open gate that its workflow marks forAgents (list_gates shows it). Other gates are answered " +
      "by people, or with answer_gate by an operator.",
    args: z.strictObject({ run: runId, gate: z.string().min(1).max(512), value: jsonValue, ...audit }),
  },
  async ({ run, gate, value, by, reason }, { api, signal: aborted }) => {
    const { gates } = await api.call("gates.list", { query: { run, open: true, limit: 100 } });
    const found = gates.find(
      (open) => open.name === gate && (open.approvers as { agents?: unknown } | null)?.agents === true,
    );
    if (found === undefined)
      throw notForAgents(
        run,
        gate,
        gates.some((open) => open.name === gate),
      );
    // It must match, so that the value reaches this gate and no later one of the same name.
    const body = {
      name: gate,
      value,
      by,
      reason,
      mustMatch: true as const,
      ...defined({ binds: found.binds ?? undefined }),
    };
    return { sent: await api.call("runs.signal", { params: { id: run }, body }, { signal: aborted }) };
  },
);

function notForAgents(run: string, gate: string, isOpen: boolean): TapeError {
  if (!isOpen) return new TapeError("TAPE_GATE_STALE", `run ${run} has no open gate ${gate}`, { run, gate });
  const message = `gate ${gate} of run ${run} is not for agents: its definition has no forAgents`;
  return new TapeError("TAPE_NOT_APPROVER", message, { run, gate });
}

export const writeTools: readonly Tool[] = [startRun, awaitRun, signal];
