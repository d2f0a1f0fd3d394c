import { plainReactor } from "../../model/build.ts";
import type { Limits } from "../../model/limits.ts";
import type {
  AdminReadOps,
  EventReadOps,
  ListOps,
  Page,
  QueueReadOps,
  ReadOps,
  StreamReadOps,
} from "../contract/store.ts";
import {
  apiTokenOf,
  budgetRowOf,
  claimRowOf,
  processOf,
  publishedOf,
  quotaOf,
  replyOf,
  scheduleRowOf,
  timerRowOf,
  valueRowOf,
} from "../decode-rows.ts";
import { leaseViewOf } from "../lease-rules.ts";
import { mapPage, pageOf } from "../page.ts";
import { pageLimit } from "../validate/entry.ts";
import type { SqlBackend } from "./backend.ts";
import type { Secrets } from "./intake.ts";
import { type ListName, queryPage } from "./paging.ts";
import { type Plan, queryRow, queryRows } from "./plan.ts";
import { agendaPlan, dueSchedulesPlan, dueTimersPlan, unservedPlan } from "./plans/backlogs.ts";
import { blobPlan } from "./plans/blobs.ts";
import { buildRunsPlan, buildsPlan, isDrainedPlan } from "./plans/builds.ts";
import { censusPlan, duePlan } from "./plans/census.ts";
import { deadLettersPlan, subjectsPlan } from "./plans/events.ts";
import * as lists from "./plans/lists.ts";
import { explainedPlan } from "./plans/queue-cycles.ts";
import { partitionsPlan, queuesPlan, slotsPlan } from "./plans/queue-reads.ts";
import * as reads from "./plans/reads.ts";
import { archivedPlan, retentionPlan } from "./plans/retention.ts";
import { chunksPlan, streamAccessPlan, streamPartsPlan, streamsPlan } from "./plans/streams.ts";
import { findTarget } from "./plans/target.ts";
import { sinksOf } from "./sinks.ts";
import type { ParamsOf, RowOf, StatementName } from "./statements.gen.ts";

/** Whose turn a read uses; undefined: one of the store's own. */
type Turn = string | undefined;

/** Four reports may be lost before a process counts as gone. */
const processTimeoutMs = 60_000;

export function readOf(driver: SqlBackend, limits: Limits, { secret, seal }: Secrets): ReadOps {
  const { row, few, list } = queriesOf(driver, limits);
  return {
    ...listsOf(driver, limits),
    ...adminReadsOf(driver, limits),
    ...queueReadsOf(driver, limits),
    builds: async (tenant, filter = {}) => driver.read(buildsPlan(tenant, filter, limits), tenant),
    buildRuns: async (tenant, build, page = {}) => driver.read(buildRunsPlan(tenant, build, page, limits), tenant),
    isDrained: async (tenant, build) => driver.read(isDrainedPlan(tenant, build), tenant),
    due: async (reactor, cap, tenant) => driver.read(duePlan(reactor, cap, tenant), tenant),
    census: async (tenant) => driver.read(censusPlan(tenant), tenant),
    ...eventReadsOf(driver, limits, seal),
    ...streamReadsOf(driver, limits, secret),
    archived: async (tenant, page = {}) => driver.read(archivedPlan(tenant, page, limits), tenant),
    retention: async (tenant, withinMs = 0) => driver.read(retentionPlan(tenant, withinMs), tenant),
    blob: async (tenant, target, blob, n) => driver.read(blobPlan(tenant, target, blob, n), tenant),
    run: (tenant, id) => driver.read(reads.runPlanById(tenant, id), tenant),
    progress: async (tenant, ids) => driver.read(reads.progressPlan(tenant, ids, limits), tenant),
    async journal(tenant, target, page = {}) {
      const { from = 1, limit, inbox = false } = page;
      const whole = from === 1 && limit === undefined && !inbox;
      if (whole && "journal" in target && driver.journal !== undefined) return driver.journal(tenant, target.journal);
      return driver.read(reads.journalPlan(tenant, target, page, limits), tenant);
    },
    effects: async (tenant, filter = {}) => driver.read(reads.effectsPlan(tenant, filter, limits), tenant),
    dueTimers: async (limit, tenant) =>
      (await driver.read(dueTimersPlan(few(limit), tenant), tenant)).map((r) => ({
        ...timerRowOf(r),
        lateMs: Number(r.late_ms),
      })),
    async agenda(tenant, workflows, queues, build) {
      const times = await driver.read(agendaPlan(tenant, workflows, queues, build), tenant);
      return times.flatMap(({ reactor, in_ms }) =>
        in_ms === null
          ? []
          : [
              {
                reactor: reactor === null ? undefined : plainReactor(reactor),
                dueInMs: Math.max(0, Number(in_ms)),
                lateMs: Math.max(0, -Number(in_ms)),
              },
            ],
      );
    },
    unserved: async (workflows, minLagMs, tenant, build) =>
      driver.read(unservedPlan(workflows, minLagMs, tenant, build), tenant),
    dueSchedules: async (limit, tenant) =>
      (await driver.read(dueSchedulesPlan(few(limit), tenant), tenant)).map(scheduleRowOf),
    businessKeyOwner: (tenant, scope, businessKey) =>
      row(tenant, "business_key.find", { tenant, scope, businessKey }, claimRowOf),
    published: async (tenant, id, { name = null, above = "", limit } = {}) =>
      list(tenant, "published.list", { tenant, id, name, above, limit: pageLimit(limit, limits) }, publishedOf),
    reply: (tenant, id, n) => row(tenant, "reply.find", { tenant, id, n }, replyOf),
    value: (tenant, key) => row(tenant, "value.get", { tenant, key }, valueRowOf),
    lease: (tenant, target) => driver.read(reads.leasePlan(tenant, target), tenant),
    async feed(cursor, limit, tenant) {
      const maxRecords = pageLimit(limit, limits);
      if (tenant === undefined) return driver.feed(cursor, maxRecords, undefined);
      const cursors = await seal();
      const from = cursor === undefined ? undefined : cursors.open(tenant, cursor, driver.feedParts);
      return cursors.page(tenant, await driver.feed(from, maxRecords, tenant));
    },
    async frontier(tenant) {
      const position = await driver.frontier(tenant);
      return tenant === undefined ? position : (await seal()).seal(tenant, [position])[0]!;
    },
    now: async () => (await row(undefined, "meta.get", {}, (r) => Number(r.at))) ?? 0,
  };
}

function listsOf(driver: SqlBackend, limits: Limits): ListOps {
  const { rows, list } = queriesOf(driver, limits);
  const { pageBytes } = limits;
  return {
    runs: async (tenant, filter = {}) => driver.read(lists.runsPlan(tenant, filter, limits), tenant),
    gates: async (tenant, filter = {}) => driver.read(reads.gatesPlan(tenant, filter, limits), tenant),
    timers: async (tenant, filter = {}) => driver.read(reads.timersPlan(tenant, filter, limits), tenant),
    schedules: async (tenant, { above = "", limit } = {}) =>
      list(tenant, "schedule.list", { tenant, above, limit: pageLimit(limit, limits) }, scheduleRowOf),
    async budgets(tenant, run) {
      const journal = await driver.read(findTarget(tenant, { run }), tenant);
      return journal === undefined ? [] : rows(tenant, "budget.list", { run: journal }, budgetRowOf);
    },
    spend: async (tenant, limit) => driver.read(lists.spendPlan(tenant, pageLimit(limit, limits)), tenant),
    rate: async (tenant, since, sizeMs, buckets) => driver.read(lists.ratePlan(tenant, since, sizeMs, buckets), tenant),
    async values(tenant, prefix, limit, above = "", order = "asc") {
      const range = { tenant, lower: prefix, upper: lists.upperOf(prefix, limits), limit: pageLimit(limit, limits) };
      if (order === "asc") return list(tenant, "value.list", { ...range, above }, valueRowOf);
      const below = above === "" ? range.upper : above;
      return list(tenant, "value.list_down", { ...range, below }, valueRowOf);
    },
    valueHistory: async (tenant, key, after, limit) =>
      driver.read(reads.historyPlan(tenant, key, after, { limit: pageLimit(limit, limits), pageBytes }), tenant),
    async leases(tenant, { kind, held = false, names, prefix = "", above = "", limit } = {}) {
      const page = { tenant, held, limit: pageLimit(limit, limits) };
      if (kind === undefined) return rows(tenant, "lease.list", page, leaseViewOf);
      const some = names === undefined ? null : JSON.stringify(names);
      const found = await rows(tenant, "name.list", { ...page, prefix, above, names: some }, leaseViewOf);
      return pageOf(found, found.length === page.limit);
    },
    terms: (tenant, target) => driver.read(reads.termsPlan(tenant, target), tenant),
    audit: async (tenant, page = {}) => driver.audit(page.before, pageLimit(page.limit, limits), tenant),
  };
}

function queueReadsOf(driver: SqlBackend, limits: Limits): QueueReadOps {
  return {
    queues: async (tenant, page = {}) => driver.read(queuesPlan(tenant, page, limits), tenant),
    queuePartitions: async (tenant, queue, page = {}) =>
      driver.read(partitionsPlan(tenant, queue, page, limits), tenant),
    queueSlots: async (tenant, queue, filter = {}) => driver.read(slotsPlan(tenant, queue, filter, limits), tenant),
    queuePosition: async (tenant, run) => driver.read(explainedPlan(tenant, run), tenant),
  };
}

function eventReadsOf(driver: SqlBackend, limits: Limits, seal: Secrets["seal"]): EventReadOps {
  return {
    deadLetters: async (tenant, sink, page = {}) => driver.read(deadLettersPlan(tenant, sink, page, limits), tenant),
    subjects: async (tenant, journals) => driver.read(subjectsPlan(tenant, journals), tenant),
    sinks: sinksOf(driver, limits, seal),
  };
}

function streamReadsOf(driver: SqlBackend, limits: Limits, secret: Secrets["secret"]): StreamReadOps {
  return {
    chunks: async (tenant, wanted) => driver.read(chunksPlan(tenant, wanted, limits), tenant),
    streams: async (tenant, run) => driver.read(streamsPlan(tenant, run), tenant),
    streamParts: async (tenant, run, stream) => driver.read(streamPartsPlan(tenant, run, stream, limits), tenant),
    streamAccess: async (token) => driver.read(streamAccessPlan(await secret(), token), undefined),
  };
}

function adminReadsOf(driver: SqlBackend, limits: Limits): AdminReadOps {
  const { row, list } = queriesOf(driver, limits);
  return {
    token: (id) => row(undefined, "token.get", { id }, apiTokenOf),
    tokens: async (tenant, { above = "", limit } = {}) =>
      list(tenant, "token.list", { tenant: tenant ?? null, above, limit: pageLimit(limit, limits) }, apiTokenOf),
    quota: async (tenant) => (await row(tenant, "quota.get", { tenant }, quotaOf))!,
    quotas: async ({ above = "", limit } = {}) =>
      list(undefined, "quota.list", { above, limit: pageLimit(limit, limits) }, quotaOf),
    processes: async (tenant) =>
      list(tenant, "process.list", { tenant, olderMs: processTimeoutMs, limit: limits.pageRows }, processOf),
    settings: () => driver.settings(),
  };
}

type MapRow<N extends StatementName, T> = (row: RowOf<N>) => T;

/** Reads of one statement. */
function queriesOf(driver: SqlBackend, limits: Limits) {
  const rows = <N extends StatementName, T>(
    tenant: Turn,
    sql: N,
    params: ParamsOf<N>,
    map: MapRow<N, T>,
  ): Promise<T[]> => {
    const plan = function* (): Plan<T[]> {
      return (yield* queryRows(sql, params)).map(map);
    };
    return driver.read(plan(), tenant);
  };
  const row = <N extends StatementName, T>(
    tenant: Turn,
    sql: N,
    params: ParamsOf<N>,
    map: MapRow<N, T>,
  ): Promise<T | undefined> => {
    const plan = function* (): Plan<T | undefined> {
      const found = yield* queryRow(sql, params);
      return found === undefined ? undefined : map(found);
    };
    return driver.read(plan(), tenant);
  };
  const { pageBytes } = limits;
  const few = (limit: number) => ({ limit: pageLimit(limit, limits), pageBytes });
  const list = <N extends ListName, T>(
    tenant: Turn,
    sql: N,
    params: ParamsOf<N> & { readonly limit: number },
    map: MapRow<N, T>,
  ): Promise<Page<T>> => {
    const plan = function* (): Plan<Page<T>> {
      return mapPage(yield* queryPage(sql, { ...params, pageBytes }), map);
    };
    return driver.read(plan(), tenant);
  };
  return { rows, row, list, few };
}
