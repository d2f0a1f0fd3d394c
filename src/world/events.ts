import { RunNotSupportedError, WorkflowWorldError } from "@workflow/errors";
import {
  type CreateEventParams,
  CreateEventSchema,
  type Event,
  type EventResult,
  type Storage,
  stripEventDataRefs,
  validateUlidTimestamp,
} from "@workflow/world";
import { isTapeError } from "../model/errors.ts";
import { valuesUnder } from "../store/value-keys.ts";
import { hasEnded, type LogEvent, liveHook, type NewEvent, type RunState } from "./entities.ts";
import type { HookTokens } from "./hook-tokens.ts";
import { eventNumberOf, ulid } from "./ids.ts";
import { bad, maxLimit, numberOfCursor, type PageRequest, pageRequest, textOf } from "./paging.ts";
import { decide } from "./rules.ts";
import { type AppendOutcome, type RunLogs, specVersion, type WorldDeps } from "./run-log.ts";
import type { RunSummaries } from "./runs.ts";

/** Events of runs before it are in another format. */
const oldestSpecVersion = 2;

type EventPage = Pick<Required<EventResult>, "events" | "cursor" | "hasMore">;

/** `world.events`: the log of each run, and the only way in which anything about a run changes. */
export class WorldEvents implements Pick<Storage["events"], "get" | "list" | "listByCorrelationId"> {
  readonly #deps: WorldDeps;
  readonly #logs: RunLogs;
  readonly #tokens: HookTokens;
  readonly #summaries: RunSummaries;

  constructor(deps: WorldDeps, logs: RunLogs, tokens: HookTokens, summaries: RunSummaries) {
    this.#deps = deps;
    this.#logs = logs;
    this.#tokens = tokens;
    this.#summaries = summaries;
  }

  async create(id: string | null, data: unknown, params: CreateEventParams = {}): Promise<EventResult> {
    const request = requestOf(data);
    const run = this.#runOf(id, request);
    const { eventType, correlationId } = request;
    const conflictingRunId = eventType === "hook_created" ? await this.#claim(run, request) : undefined;
    const now = this.#deps.clock.wall();
    const appended = await this.#logs.append(
      run,
      (state) => decide(state, request, { runId: run, now, conflictingRunId }),
      (events) => this.#announce(run, events),
    );
    const { state, events } = appended;
    const isEnd = events.length > 0 && eventType.startsWith("run_") && hasEnded(state.run);
    const result = resultOf(appended, request, params);
    if (isEnd) await this.#summaries.ended(state.run!);
    if (eventType === "run_started" && params.skipPreload !== true) {
      return { ...result, ...(await this.#page(run, { limit: maxLimit, order: "asc", cursor: undefined })) };
    }
    const isStepEnd = eventType === "step_completed" || eventType === "step_failed";
    if (!isStepEnd || params.sinceCursor === undefined || correlationId === undefined) return result;
    const { resolveData = "all" } = params;
    const since = await this.#page(run, { limit: maxLimit, order: "asc", cursor: params.sinceCursor });
    return { ...result, ...since, events: since.events.map((event) => stripEventDataRefs(event, resolveData)) };
  }

  async get(
    id: string,
    eventId: string,
    { resolveData = "all" }: { resolveData?: "none" | "all" } = {},
  ): Promise<Event> {
    const run = textOf("runId", id);
    const from = eventNumberOf(textOf("eventId", eventId));
    const { events } =
      from === undefined ? { events: [] } : await this.#logs.events(run, { from, limit: 1, order: "asc" });
    const found = events[0]?.[1];
    if (found?.eventId !== eventId) {
      throw new WorkflowWorldError(`Event "${eventId}" of run "${run}" not found`, { status: 404 });
    }
    return stripEventDataRefs(eventOf(found), resolveData);
  }

  async list({ runId, pagination, resolveData = "all" }: Parameters<Storage["events"]["list"]>[0]) {
    const { events, cursor, hasMore } = await this.#page(textOf("runId", runId), pageRequest(pagination, "asc"));
    return { data: events.map((event) => stripEventDataRefs(event, resolveData)), cursor, hasMore };
  }

  async listByCorrelationId(params: Parameters<Storage["events"]["listByCorrelationId"]>[0]) {
    const { pagination, resolveData = "all" } = params;
    const id = textOf("correlationId", params.correlationId);
    const request = pageRequest(pagination, "asc");
    const data: Event[] = [];
    let last: string | null = null;
    for await (const [place, event] of this.#correlated(id, request)) {
      if (data.length === request.limit) return { data, cursor: last, hasMore: true };
      data.push(stripEventDataRefs(eventOf(event), resolveData));
      last = place;
    }
    return { data, cursor: last, hasMore: false };
  }

  /** All events of a correlation, with the place after each. A correlation belongs to one run, as a rule. */
  async *#correlated(id: string, { order, cursor }: PageRequest): AsyncGenerator<[string, LogEvent]> {
    const [after, number] = cursor?.split("#") ?? [];
    const { keys } = this.#deps;
    const above = after === undefined ? {} : { above: keys.correlation(id, after) };
    const runs = after === undefined ? [] : [after];
    for await (const { value } of valuesUnder(this.#deps, keys.correlations(id), { order, ...above })) {
      runs.push((value as { run: string }).run);
    }
    for (const run of runs) {
      let from = run === after ? numberOfCursor(number) : undefined;
      for (let more = true; more; ) {
        const page = await this.#logs.events(run, { from, limit: maxLimit, order });
        for (const [at, event] of page.events) {
          from = order === "asc" ? at + 1 : at;
          if (event.correlationId === id) yield [`${run}#${from}`, event];
        }
        more = page.more;
      }
    }
  }

  /** The cursor is the number of the next event, and stays valid: later events come behind it. */
  async #page(run: string, { limit, order, cursor }: PageRequest): Promise<EventPage> {
    const from = numberOfCursor(cursor);
    const { events, more } = await this.#logs.events(run, { from, limit, order });
    const last = events.at(-1)?.[0];
    const next = last === undefined ? (cursor ?? null) : String(order === "asc" ? last + 1 : last);
    return { events: events.map(([, event]) => eventOf(event)), cursor: next, hasMore: more };
  }

  #runOf(id: string | null, { eventType, specVersion: version = specVersion }: NewEvent): string {
    const isNew = eventType === "run_created";
    if (isNew && (version < oldestSpecVersion || version > specVersion)) {
      throw new RunNotSupportedError(version, specVersion);
    }
    if (isNew && (id === null || id === "")) return `wrun_${ulid(this.#deps.clock.wall(), this.#deps.random)}`;
    const run = textOf("runId", id);
    const fault = isNew ? validateUlidTimestamp(run, "wrun_") : null;
    if (fault !== null) throw new WorkflowWorldError(fault, { status: 400 });
    return run;
  }

  /** Claims the hook's token, unless the event will be refused anyway. */
  async #claim(run: string, request: NewEvent): Promise<string | undefined> {
    decide(await this.#logs.state(run), request, { runId: run, now: 0 });
    return this.#tokens.claim(textOf("token", request.eventData?.token), { run, hook: request.correlationId! });
  }

  /** What lists find runs and correlations by is stored first: a list skips what turns out not to exist. */
  async #announce(run: string, events: readonly NewEvent[]): Promise<void> {
    const { keys } = this.#deps;
    const wanted = events.flatMap(({ eventType, correlationId }): [string, unknown][] => {
      if (eventType === "run_created") return [[keys.run(run), { run }]];
      const isFirst = eventType.endsWith("_created") || eventType === "hook_conflict" || eventType === "attr_set";
      if (!isFirst || correlationId === undefined) return [];
      const hook: [string, unknown][] =
        eventType === "hook_created" ? [[keys.hook(correlationId), { run, hook: correlationId }]] : [];
      return [[keys.correlation(correlationId, run), { run }], ...hook];
    });
    await Promise.all(wanted.map(([key, value]) => this.#create(key, value)));
  }

  async #create(key: string, value: unknown): Promise<void> {
    try {
      await this.#deps.store.intake.putValue(this.#deps.tenant, key, value, "must_create");
    } catch (error) {
      if (!isTapeError(error, "TAPE_VERSION_CONFLICT")) throw error; // it is there already
    }
  }
}

/** Checks a request by the schema of the framework. */
function requestOf(data: unknown): NewEvent {
  const parsed = CreateEventSchema.safeParse(data);
  if (!parsed.success) throw bad("event", `the event is not one of the framework's: ${parsed.error.message}`);
  const { eventType, correlationId, eventData, specVersion: version } = parsed.data as NewEvent;
  return {
    eventType,
    ...(version !== undefined && { specVersion: version }),
    ...(correlationId !== undefined && { correlationId: textOf("correlationId", correlationId) }),
    ...(eventData !== undefined && { eventData }),
  };
}

const eventOf = (event: LogEvent): Event => event as unknown as Event;

/** The event and what it changed, as the types of the framework have it. */
function resultOf(
  { state, events, stepCreated }: AppendOutcome,
  request: NewEvent,
  params: CreateEventParams,
): EventResult {
  const event = events.at(-1);
  return {
    ...(event !== undefined && { event: stripEventDataRefs(eventOf(event), params.resolveData ?? "all") }),
    ...(entityOf(state, request) as Partial<EventResult>),
    ...(stepCreated && { stepCreated: true }),
  };
}

function entityOf(state: RunState, { eventType, correlationId = "" }: NewEvent): object {
  if (eventType.startsWith("step_")) return { step: state.steps.get(correlationId) };
  if (eventType.startsWith("wait_")) return { wait: state.waits.get(correlationId) };
  if (eventType.startsWith("hook_")) return { hook: liveHook(state, correlationId) };
  return { run: state.run };
}
