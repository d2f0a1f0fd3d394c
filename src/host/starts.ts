import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { isRemote } from "../client/remote.ts";
import { starterOf } from "../model/approvers.ts";
import { TapeError } from "../model/errors.ts";
import type { ItemResult } from "../model/lease.ts";
import { validate } from "../sdk/schema.ts";
import { timingFieldsOf, timingKeys } from "../sdk/start-options.ts";
import type { OwnTransaction } from "../sdk/transaction.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import { assertWorkflow, type Workflow, wholeMs } from "../sdk/workflow.ts";
import type { CreateResult, RunSpec, Store } from "../store/contract/store.ts";
import { millionths, type StartOptions, withinOf } from "./options.ts";
import type { StartItem } from "./run-handle.ts";
import type { Talk } from "./talk.ts";
import type { Worker } from "./worker.ts";

export interface StartsDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly talk: Pick<Talk, "startSignals">;
  /** Workers of this app. The list grows while the app is open. */
  readonly workers: readonly Worker[];
}

const startKeys = ["id", "labels", "budget", "by", ...timingKeys, "deadline", "signals", "transaction"];

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
    assertKnownKeys("start", options, startKeys);
    const { clock, random, store, talk } = this.#deps;
    const { deadline, transaction } = options;
    if (transaction !== undefined) withinOf(store);
    const deadlineMs = deadline === undefined ? undefined : wholeMs("start", "deadline", deadline);
    const checked = await validate(workflow.schema, input);
    if ("fault" in checked)
      throw new TapeError("TAPE_BAD_INPUT", `input of ${workflow.name}: ${checked.fault}`, { field: "input" });
    const { id = random.uuid(clock.wall()), labels, budget, by, signals } = options;
    const { version, maxStallMs } = workflow;
    // Another process validates the input again, and the schema's output may not be a valid input.
    const isLocal = !isRemote(store) || this.#workerFor(workflow.name) !== undefined;
    const given =
      workflow.schema === undefined || !isLocal ? { input } : { input: checked.value, checked: true as const };
    return {
      id,
      workflow: workflow.name,
      ...given,
      ...timingFieldsOf("start", workflow, input, options),
      ...(version !== undefined && { version }),
      ...(labels !== undefined && { labels }),
      ...(maxStallMs !== undefined && { maxStallMs }),
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(budget === undefined ? {} : { budget: millionths(budget) }),
      ...(by === undefined ? {} : { starters: [starterOf({ by })!] }),
      ...(signals === undefined ? {} : { signals: await talk.startSignals(signals) }),
    };
  }

  /** Creates runs of one workflow; a process of this app drives those that can start at once. */
  async create(workflow: string, specs: readonly RunSpec[]): Promise<ItemResult<CreateResult>[]> {
    const { store, tenant } = this.#deps;
    const driver = this.#workerFor(workflow)?.driver;
    return driver?.start(specs) ?? store.intake.createRuns(tenant, specs);
  }

  async createAll<I, O>(
    workflow: Workflow<I, O>,
    items: readonly StartItem<I>[],
    options: StartOptions,
  ): Promise<ItemResult<StartedRun>[]> {
    if ([options, ...items].some(({ transaction }) => transaction !== undefined)) {
      const message = "startAll takes no transaction: start each run with app.start inside it";
      throw new TapeError("TAPE_BAD_INPUT", message, { field: "transaction" });
    }
    const specs = await Promise.all(
      items.map(({ input, ...own }) => this.spec(workflow, input, { ...options, ...own })),
    );
    const results = await this.create(workflow.name, specs);
    return results.map((result, k) => (result.ok ? { ...result, id: result.run ?? specs[k]!.id } : result));
  }

  #workerFor(workflow: string): Worker | undefined {
    return this.#deps.workers.find((worker) => worker.serves(workflow));
  }

  /** `transaction`: the caller's own, in which the run is created; no process holds it before the commit. */
  async createOne(spec: RunSpec, transaction?: OwnTransaction): Promise<StartedRun> {
    const { store, tenant } = this.#deps;
    const [created] =
      transaction === undefined
        ? await this.create(spec.workflow, [spec])
        : [{ ok: true as const, ...(await withinOf(store).createRun(transaction, tenant, spec)) }];
    if (created === undefined) throw new TapeError("TAPE_INVARIANT", "a run was neither created nor rejected");
    if (!created.ok) throw created.error;
    return { id: created.run ?? spec.id, journal: created.journal, fresh: created.fresh };
  }
}
