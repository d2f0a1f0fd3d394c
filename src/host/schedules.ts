import { fingerprint } from "../base/canonical.ts";
import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import { defaultPriority } from "../model/queue.ts";
import type { ScheduleRow } from "../model/rows.ts";
import * as model from "../model/schedule.ts";
import type { QueueChoice } from "../sdk/queue-choice.ts";
import { validate } from "../sdk/schema.ts";
import { queueFieldsOf, queueKeys } from "../sdk/start-options.ts";
import { assertKnownKeys, durationOrThrow } from "../sdk/validate.ts";
import type { Workflow } from "../sdk/workflow.ts";
import { isSealedStore } from "../seal/sealed-store.ts";
import type { ScheduleAudit, Store } from "../store/contract/store.ts";
import { readList } from "../store/read-all.ts";

/** When a schedule fires, and what it does about overlapping and missed firings. */
export interface ScheduleOptions extends QueueChoice {
  /** Five fields, six with seconds in front, or a nickname such as `@daily`. */
  readonly cron: string;
  /** An IANA name such as `Europe/Zurich`. Default `UTC`, never the machine's: replicas must agree. */
  readonly timeZone?: string;
  /** While the last run is active: `skip` the firing (default), `allow` another run, or `wait` for its end. */
  readonly overlap?: (typeof model.overlapPolicies)[number];
  /** Which missed firings to make up for: `all`, the `latest` (default), or `none`. */
  readonly catchUp?: (typeof model.catchUpPolicies)[number];
  /** A firing older than this is not made up for. Default 24 h. */
  readonly catchUpWindow?: Duration;
  /** Labels of each run. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Caps of each run's tree, by unit. */
  readonly budget?: Readonly<Record<string, number>>;
}

/** The fields of a schedule to replace. */
export interface ScheduleChange<I> extends Partial<ScheduleOptions> {
  /** What to start from now on. */
  readonly start?: { readonly workflow: Workflow<I, unknown>; readonly input: I };
}

/** A schedule as lists show it. */
export interface ScheduleView extends Required<Pick<ScheduleOptions, "cron" | "timeZone" | "overlap" | "catchUp">> {
  /** The id of the schedule. */
  readonly id: string;
  readonly workflow: string;
  /** The input of its runs. */
  readonly input: unknown;
  /** How far back missed firings are made up for, in milliseconds. */
  readonly catchUpWindow: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Caps of each run's tree, by unit. */
  readonly budget: Readonly<Record<string, number>>;
  /** Whether it is paused. */
  readonly paused: boolean;
  /** The next firing; null: never again. */
  readonly nextAt: number | null;
  /** The run that the last firing started. */
  readonly lastRun: string | null;
  /** The last firing that could not start its run, with the error. */
  readonly lastError: { readonly at: number; readonly code: string; readonly message: string } | undefined;
}

/** What `upsert` has done. */
export interface ScheduleUpsert {
  readonly schedule: ScheduleView;
  /** Whether the schedule is new. */
  readonly created: boolean;
  /** The fields of the rule that it has changed; empty: the rule was the same, and nothing was written. */
  readonly changed: readonly string[];
}

const optionKeys = ["cron", "timeZone", "overlap", "catchUp", "catchUpWindow", "labels", "budget", ...queueKeys];
/** Two operators may write at once; the second reads again. More than 10 conflicts in a row are no coincidence. */
const maxTries = 10;

/**
 * Schedules start runs by the clock. The id of a firing's run follows from the schedule and the time, as in
 * `nightly@2026-11-15T03:00:00.000Z`, so it is started once, whichever process fires it.
 *
 * @example
 * await app.schedules.create("nightly", treasury, { day: "today" }, { cron: "0 3 * * *", timeZone: "Europe/Zurich" });
 */
export class Schedules {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #random: Random;

  constructor(store: Store, tenant: string, random: Random) {
    this.#store = store;
    this.#tenant = tenant;
    this.#random = random;
  }

  /** Repeating the same call returns the existing schedule; another definition fails with TAPE_SCHEDULE_EXISTS. */
  async create<I>(
    id: string,
    workflow: Workflow<I, unknown>,
    input: I,
    options: ScheduleOptions,
  ): Promise<ScheduleView> {
    const { nameLength } = this.#store.limits;
    if (typeof id === "string" && id.length + model.runIdSuffixLength > nameLength) {
      const message = `the id is too long: at most ${nameLength - model.runIdSuffixLength} characters, because run ids append the time`;
      throw new TapeError("TAPE_TOO_LARGE", message, { limit: "nameLength" });
    }
    const start = { ...(await this.#startOf(id, workflow, input)), ...queueOf(workflow, input, options) };
    const plan = { uid: this.#random.uuid(0), lastRun: null, dueAt: null, ...start, ...settings(options, defaults) };
    const dueAt = model.cronOf(plan).next(await this.#store.read.now()) ?? null;
    try {
      return await this.#view(await this.#put(id, { ...plan, dueAt }, false, null));
    } catch (error) {
      if (!isTapeError(error, "TAPE_VERSION_CONFLICT")) throw error;
    }
    const row = await this.#row(id);
    if (sameDefinition(model.decodeSchedule(id, row.spec), plan)) return this.#view(row);
    throw new TapeError("TAPE_SCHEDULE_EXISTS", `schedule ${id} exists with another definition`, { id });
  }

  /**
   * Declares a schedule: creates it, or changes its rule to this one. The same declaration again writes nothing, so
   * every replica may declare at its start; of two different ones the last wins. A paused schedule stays paused. Other
   * times count from now, but a firing that is due already, and on time, is kept. The audit log has each change.
   *
   * @example
   * await app.schedules.upsert("nightly", treasury, { day: "today" }, { cron: "0 4 * * *" }, { by: "treasury 2.1" });
   */
  async upsert<I>(
    id: string,
    workflow: Workflow<I, unknown>,
    input: I,
    options: ScheduleOptions,
    audit: { readonly by?: string; readonly reason?: string } = {},
  ): Promise<ScheduleUpsert> {
    const { by = "program", reason = "declared by the program" } = audit;
    const wanted = { ...(await startOf(workflow, input)), ...queueOf(workflow, input, options) };
    for (let tries = 1; ; tries++) {
      const row = (await this.#all()).find((schedule) => schedule.id === id);
      try {
        if (row === undefined) {
          return { schedule: await this.create(id, workflow, input, options), created: true, changed: [] };
        }
        const plan = model.decodeSchedule(id, row.spec);
        const changed = changedFields(
          { ...plan, input: (await this.#view(row)).input },
          { ...wanted, ...settings(options, defaults) },
        );
        if (changed.length === 0) return { schedule: await this.#view(row), created: false, changed };
        const { uid, lastRun, lastError } = plan;
        const start = changed.includes("input")
          ? await this.#startOf(id, workflow, input)
          : { ...wanted, input: plan.input };
        const rule = { ...wanted, ...start, ...settings(options, defaults) };
        const now = await this.#store.read.now();
        const isDue = plan.dueAt !== null && plan.dueAt <= now && plan.dueAt > now - model.onTimeWindowMs;
        const keeps = isDue || (rule.cron === plan.cron && rule.timeZone === plan.timeZone);
        const dueAt = keeps ? plan.dueAt : (model.cronOf(rule).next(now) ?? null);
        const next = { uid, lastRun, ...rule, dueAt, ...defined({ lastError }) };
        const written = await this.#put(id, next, row.paused, row, { by, reason, changed });
        return { schedule: await this.#view(written), created: false, changed };
      } catch (error) {
        // Another replica was faster: then its rule is the one to compare with.
        const lost = isTapeError(error, "TAPE_VERSION_CONFLICT") || isTapeError(error, "TAPE_SCHEDULE_EXISTS");
        if (!lost || tries === maxTries) throw error;
      }
    }
  }

  /**
   * Changes the given fields and leaves the rest. A new input comes with its workflow, whose schema it must fit. New
   * times count from now: earlier missed firings are dropped.
   */
  async update<I>(id: string, change: ScheduleChange<I>): Promise<ScheduleView> {
    const { start, ...options } = change;
    const replaced = start === undefined ? {} : await this.#startOf(id, start.workflow, start.input);
    const queue = start === undefined ? otherQueue(options) : queueOf(start.workflow, start.input, options);
    return this.#change(id, (plan, now, paused) => {
      const { version: _version, ...before } = plan;
      const next = { ...(start === undefined ? plan : before), ...replaced, ...queue, ...settings(options, plan) };
      const sameTimes = next.cron === plan.cron && next.timeZone === plan.timeZone;
      return { plan: { ...next, dueAt: sameTimes ? plan.dueAt : (model.cronOf(next).next(now) ?? null) }, paused };
    });
  }

  /** Nothing fires until the schedule is resumed. Runs that were started continue. */
  pause(id: string): Promise<ScheduleView> {
    return this.#change(id, (plan) => ({ plan, paused: true }));
  }

  /** Fires again from now on. Firings that fell due during the pause, or were still due before it, are dropped. */
  resume(id: string): Promise<ScheduleView> {
    return this.#change(id, (plan, now, paused) => ({
      plan: paused ? { ...plan, dueAt: model.cronOf(plan).next(now) ?? null } : plan,
      paused: false,
    }));
  }

  /** false: no such schedule. Its runs stay. */
  delete(id: string): Promise<boolean> {
    return this.#store.intake.deleteSchedule(this.#tenant, id);
  }

  /** All schedules of the tenant, by id. */
  async list(): Promise<ScheduleView[]> {
    return Promise.all((await this.#all()).map((row) => this.#view(row)));
  }

  async #change(
    id: string,
    make: (plan: model.SchedulePlan, now: number, paused: boolean) => { plan: model.SchedulePlan; paused: boolean },
  ): Promise<ScheduleView> {
    for (let tries = 1; ; tries++) {
      const row = await this.#row(id);
      const { plan, paused } = make(model.decodeSchedule(id, row.spec), await this.#store.read.now(), row.paused);
      try {
        return await this.#view(await this.#put(id, plan, paused, row));
      } catch (error) {
        if (!isTapeError(error, "TAPE_VERSION_CONFLICT") || tries === maxTries) throw error;
      }
    }
  }

  #put(
    id: string,
    plan: model.SchedulePlan,
    paused: boolean,
    before: ScheduleRow | null,
    audit?: ScheduleAudit,
  ): Promise<ScheduleRow> {
    const row = { id, spec: model.encodeSchedule(plan), nextAt: plan.dueAt, paused };
    return this.#store.intake.putSchedule(this.#tenant, row, before, audit);
  }

  /** With a codec, the input stays sealed in the schedule and goes so into its runs. */
  async #startOf<I>(
    id: string,
    workflow: Workflow<I, unknown>,
    input: I,
  ): Promise<Pick<model.SchedulePlan, "workflow" | "input" | "version">> {
    const start = await startOf(workflow, input);
    const store = this.#store;
    if (!isSealedStore(store)) return start;
    return { ...start, input: await store.sealed.sealSchedule(this.#tenant, id, start.input, workflow.name) };
  }

  async #view(row: ScheduleRow): Promise<ScheduleView> {
    const view = viewOf(row);
    const store = this.#store;
    if (!isSealedStore(store)) return view;
    return { ...view, input: await store.sealed.openSchedule(this.#tenant, row.id, view.input) };
  }

  #all(): Promise<ScheduleRow[]> {
    return readList(
      (above) => this.#store.read.schedules(this.#tenant, { above }),
      ({ id }) => id,
    );
  }

  async #row(id: string): Promise<ScheduleRow> {
    const row = (await this.#all()).find((schedule) => schedule.id === id);
    if (row === undefined) throw notFound("schedule", id);
    return row;
  }
}

type Settings = Pick<
  model.SchedulePlan,
  "cron" | "timeZone" | "overlap" | "catchUp" | "windowMs" | "labels" | "budget"
>;

const defaults: Settings = {
  cron: "",
  timeZone: "UTC",
  overlap: "skip",
  catchUp: "latest",
  windowMs: model.defaultWindowMs,
};

function settings(options: Partial<ScheduleOptions>, before: Settings): Settings {
  assertKnownKeys("a schedule", options, optionKeys);
  const { cron = before.cron, timeZone = before.timeZone, labels = before.labels, catchUpWindow } = options;
  const { overlap = before.overlap, catchUp = before.catchUp } = options;
  if (typeof cron !== "string") throw badOption("cron", "cron must be a string");
  if (typeof timeZone !== "string") throw badOption("timeZone", "timeZone must be a string");
  if (!model.overlapPolicies.includes(overlap))
    throw badOption("overlap", `overlap is one of ${model.overlapPolicies.join(", ")}`);
  if (!model.catchUpPolicies.includes(catchUp))
    throw badOption("catchUp", `catchUp is one of ${model.catchUpPolicies.join(", ")}`);
  const windowMs =
    catchUpWindow === undefined ? before.windowMs : durationOrThrow("a schedule", "catchUpWindow", catchUpWindow);
  if (labels !== undefined && Object.hasOwn(labels, "schedule")) {
    throw badOption("labels", "the label schedule is reserved: the schedule sets it");
  }
  const budget =
    options.budget === undefined ? before.budget : scaled(options.budget, (amount) => Math.round(amount * millionth));
  return { cron, timeZone, overlap, catchUp, windowMs, ...defined({ labels, budget }) };
}

async function startOf<I>(
  workflow: Workflow<I, unknown>,
  input: I,
): Promise<Pick<model.SchedulePlan, "workflow" | "input" | "version">> {
  const checked = await validate(workflow.schema, input);
  if ("fault" in checked) {
    throw new TapeError("TAPE_BAD_INPUT", `input of ${workflow.name}: ${checked.fault}`, { field: "input" });
  }
  const { name, version } = workflow;
  // The input as given: it goes through the schema when each run starts.
  return { workflow: name, input, ...defined({ version }) };
}

/** The queue in which its runs wait: that of the schedule, or that of the workflow, with the key of the input. */
function queueOf<I>(
  workflow: Workflow<I, unknown>,
  input: I,
  options: Partial<ScheduleOptions>,
): Pick<model.SchedulePlan, "queue"> {
  const {
    queue: name,
    key = "",
    priority = defaultPriority,
    weight,
  } = queueFieldsOf("a schedule", workflow, input, options);
  return name === undefined ? {} : { queue: { name, key, priority, ...defined({ weight }) } };
}

/** Without the workflow and its input, the queue and its key must be given together. */
function otherQueue<I>(options: Partial<ScheduleOptions>): Pick<model.SchedulePlan, "queue"> {
  if (queueKeys.every((key) => options[key as keyof ScheduleOptions] === undefined)) return {};
  const { queue, key } = options;
  if (queue === undefined || key === undefined) throw badOption("queue", "name queue and key, or pass start as well");
  return queueOf({ queue: undefined, key: undefined } as Workflow<I, unknown>, undefined as I, options);
}

const badOption = (field: string, message: string): TapeError => new TapeError("TAPE_BAD_INPUT", message, { field });

const millionth = 1_000_000;
const scaled = (amounts: Readonly<Record<string, number>>, scale: (amount: number) => number): Record<string, number> =>
  Object.fromEntries(Object.entries(amounts).map(([unit, amount]) => [unit, scale(amount)]));

type ScheduleRule = Settings & Pick<model.SchedulePlan, "workflow" | "version" | "input" | "queue">;
const ruleFields = [
  "workflow",
  "version",
  "input",
  "queue",
  "cron",
  "timeZone",
  "overlap",
  "catchUp",
  "windowMs",
  "labels",
  "budget",
] as const satisfies readonly (keyof ScheduleRule)[];

/** The fields in which two rules differ, by the names of the options. */
function changedFields(before: ScheduleRule, after: ScheduleRule): string[] {
  const differs = ruleFields.filter((field) => fingerprint([before[field]]) !== fingerprint([after[field]]));
  return differs.map((field) => (field === "windowMs" ? "catchUpWindow" : field));
}

function sameDefinition(a: model.SchedulePlan, b: model.SchedulePlan): boolean {
  const definitionOf = ({
    uid: _uid,
    dueAt: _dueAt,
    lastRun: _lastRun,
    lastError: _lastError,
    input,
    ...rest
  }: model.SchedulePlan) => [fingerprint(rest), fingerprint(input)];
  return definitionOf(a).join() === definitionOf(b).join();
}

function viewOf(row: ScheduleRow): ScheduleView {
  const {
    uid: _uid,
    version: _version,
    dueAt,
    lastRun,
    windowMs,
    labels = {},
    budget = {},
    ...rest
  } = model.decodeSchedule(row.id, row.spec);
  const { lastError, ...definition } = rest;
  return {
    ...definition,
    id: row.id,
    catchUpWindow: windowMs,
    labels,
    budget: scaled(budget, (amount) => amount / millionth),
    paused: row.paused,
    nextAt: dueAt,
    lastRun,
    lastError,
  };
}
