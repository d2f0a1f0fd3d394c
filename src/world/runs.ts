import { WorkflowRunNotFoundError, WorkflowWorldError } from "@workflow/errors";
import type { ListWorkflowRunsParams, Step, WorkflowRun } from "@workflow/world";
import { valuesUnder } from "../store/value-keys.ts";
import { hasEnded, type RunEntity } from "./entities.ts";
import { pageIn, pageRequest, textOf } from "./paging.ts";
import type { RunLogs, WorldDeps } from "./run-log.ts";

type Resolve = { readonly resolveData?: "none" | "all" | undefined };

/** What lists read of a run that has ended, in place of its log. */
interface Summary {
  readonly run: string;
  readonly ended?: RunEntity;
}

/** The index of runs. A run that has ended has its last state there, so that lists need not read its log. */
export class RunSummaries {
  readonly #deps: WorldDeps;

  constructor(deps: WorldDeps) {
    this.#deps = deps;
  }

  /** A crash before it costs lists some time, and nothing else. */
  async ended(run: RunEntity): Promise<void> {
    const { store, tenant, keys } = this.#deps;
    const summary: Summary = { run: run.runId, ended: withoutData(run) };
    await store.intake.putValue(tenant, keys.run(run.runId), summary, "unconditional");
  }

  /** All runs, by id: each with the state in which it ended, if it is known to have ended. */
  async *all(
    order: "asc" | "desc",
    after: string | undefined,
  ): AsyncGenerator<[id: string, ended: RunEntity | undefined]> {
    const { keys } = this.#deps;
    const above = after === undefined ? {} : { above: keys.run(after) };
    for await (const { value } of valuesUnder(this.#deps, keys.runs(), { order, ...above })) {
      const { run, ended } = value as Summary;
      yield [run, ended];
    }
  }
}

/** `world.runs` and `world.steps`: views of the logs. */
export class WorldRuns {
  readonly #logs: RunLogs;
  readonly #summaries: RunSummaries;

  constructor(logs: RunLogs, summaries: RunSummaries) {
    this.#logs = logs;
    this.#summaries = summaries;
  }

  async get(id: string, params: Resolve = {}): Promise<WorkflowRun> {
    const { run } = await this.#logs.state(textOf("runId", id));
    if (run === undefined) throw new WorkflowRunNotFoundError(id);
    return shown(run, params);
  }

  async list({ workflowName, status, pagination, resolveData = "all" }: ListWorkflowRunsParams = {}) {
    const { limit, order, cursor } = pageRequest(pagination);
    const data: WorkflowRun[] = [];
    let last: string | null = null;
    for await (const [id, ended] of this.#summaries.all(order, cursor)) {
      if (data.length === limit) return { data, cursor: last, hasMore: true };
      const isEnough = ended !== undefined && (resolveData === "none" || !fits(ended, workflowName, status));
      const run = isEnough ? ended : await this.#read(id, ended);
      if (run === undefined || !fits(run, workflowName, status)) continue;
      data.push(shown(run, { resolveData }));
      last = id;
    }
    return { data, cursor: last, hasMore: false };
  }

  async getStep(runId: string, stepId: string, params: Resolve = {}): Promise<Step> {
    const { steps } = await this.#logs.state(textOf("runId", runId));
    const step = steps.get(textOf("stepId", stepId));
    if (step === undefined)
      throw new WorkflowWorldError(`Step "${stepId}" of run "${runId}" not found`, { status: 404 });
    return shownStep(step, params);
  }

  async listSteps({
    runId,
    pagination,
    ...params
  }: { runId: string } & Pick<ListWorkflowRunsParams, "pagination"> & Resolve) {
    const { steps } = await this.#logs.state(textOf("runId", runId));
    return pageIn([...steps.values()], pageRequest(pagination), (step) => shownStep(step, params));
  }

  /** Reads the log, and stores what a crash has left out. */
  async #read(id: string, ended: RunEntity | undefined): Promise<RunEntity | undefined> {
    const { run } = await this.#logs.state(id);
    if (run !== undefined && ended === undefined && hasEnded(run)) await this.#summaries.ended(run);
    return run;
  }
}

const fits = (run: RunEntity, workflowName: string | undefined, status: string | undefined): boolean =>
  (workflowName === undefined || run.workflowName === workflowName) && (status === undefined || run.status === status);

const withoutData = (run: RunEntity): RunEntity => ({ ...run, input: undefined, output: undefined, error: undefined });

const shown = (run: RunEntity, { resolveData = "all" }: Resolve): WorkflowRun =>
  (resolveData === "none" ? { ...run, input: undefined, output: undefined } : { ...run }) as WorkflowRun;

const shownStep = (step: Step, { resolveData = "all" }: Resolve): Step =>
  resolveData === "none" ? { ...step, input: undefined, output: undefined } : { ...step };
