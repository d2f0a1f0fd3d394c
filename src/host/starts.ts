import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Random } from "../base/random.ts";
import { isRemote } from "../client/remote.ts";
import { starterOf } from "../model/approvers.ts";
import { TapeError } from "../model/errors.ts";
import type { ItemResult } from "../model/lease.ts";
import { validate } from "../sdk/schema.ts";
import { timingFieldsOf, timingKeys } from "../sdk/start-options.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import { assertWorkflow, type Workflow } from "../sdk/workflow.ts";
import type { CreateResult, RunSpec, Store } from "../store/contract/store.ts";
import type { StartOptions } from "./options.ts";
import type { StartItem } from "./run-handle.ts";
import type { Worker } from "./worker.ts";

export interface StartsDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  /** A worker of this app that serves the workflow. */
  readonly workerFor: (workflow: string) => Worker | undefined;
}

/** A created run, and whether a process of this app drives it. */
export interface StartedRun {
  readonly id: string;
  readonly journal: number;
  readonly fresh: boolean;
}

/** Checks what is started, and creates it. */
export class Starts {
  readonly #deps: StartsDeps;

  constructor(deps: StartsDeps) {
    this.#deps = deps;
  }

  /** The run to create. Everything that is wrong with it is reported before anything is written. */
  async spec<I, O>(workflow: Workflow<I, O>, input: I, options: StartOptions): Promise<RunSpec> {
    assertWorkflow(workflow as unknown);
    assertKnownKeys("start", options, ["id", "labels", "budget", "by", ...timingKeys]);
    const { clock, random, store } = this.#deps;
    const checked = await validate(workflow.schema, input);
    if ("fault" in checked)
      throw new TapeError("TAPE_BAD_INPUT", `input of ${workflow.name}: ${checked.fault}`, { field: "input" });
    const { id = random.uuid(clock.wall()), labels, budget, by, ...timing } = options;
    const { version } = workflow;
    // Another process validates the input again, and the schema's output may not be a valid input.
    const isLocal = !isRemote(store) || this.#deps.workerFor(workflow.name) !== undefined;
    const given =
      workflow.schema === undefined || !isLocal ? { input } : { input: checked.value, checked: true as const };
    return {
      id,
      workflow: workflow.name,
      ...given,
      ...timingFieldsOf("start", workflow, input, timing),
      ...defined({ version, labels }),
      ...(budget === undefined ? {} : { budget: millionths(budget) }),
      ...(by === undefined ? {} : { starters: [starterOf({ by })!] }),
    };
  }

  /** Creates runs of one workflow; a process of this app drives those that can start at once. */
  async create(workflow: string, specs: readonly RunSpec[]): Promise<ItemResult<CreateResult>[]> {
    const { store, tenant, workerFor } = this.#deps;
    const driver = workerFor(workflow)?.driver;
    return driver?.start(specs) ?? store.intake.createRuns(tenant, specs);
  }

  async createAll<I, O>(
    workflow: Workflow<I, O>,
    items: readonly StartItem<I>[],
    options: StartOptions,
  ): Promise<ItemResult<StartedRun>[]> {
    const specs = await Promise.all(
      items.map(({ input, ...own }) => this.spec(workflow, input, { ...options, ...own })),
    );
    const results = await this.create(workflow.name, specs);
    return results.map((result, k) => (result.ok ? { ...result, id: result.run ?? specs[k]!.id } : result));
  }

  async createOne(spec: RunSpec): Promise<StartedRun> {
    const [created] = await this.create(spec.workflow, [spec]);
    if (created === undefined) throw new TapeError("TAPE_INVARIANT", "a run was neither created nor rejected");
    if (!created.ok) throw created.error;
    return { id: created.run ?? spec.id, journal: created.journal, fresh: created.fresh };
  }
}

function millionths(budget: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(budget).map(([unit, cap]) => [unit, Math.round(cap * 1_000_000)]));
}
