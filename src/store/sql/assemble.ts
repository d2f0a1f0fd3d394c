import { defined } from "../../base/defined.ts";
import type { Random } from "../../base/random.ts";
import type { Limits } from "../../model/limits.ts";
import type { ClaimOps, FencedOps, Page, ReadOps, Store } from "../contract/store.ts";
import { sealUnder } from "../cursor-seal.ts";
import {
  apiTokenOf,
  budgetRowOf,
  claimRowOf,
  processOf,
  quotaOf,
  scheduleRowOf,
  timerRowOf,
  valueRowOf,
} from "../decode-rows.ts";
import { leaseViewOf } from "../lease-rules.ts";
import { mapPage } from "../page.ts";
import { runBatch } from "../validate/arguments.ts";
import { checkEntry, checkFence, checkList, pageLimit } from "../validate/entry.ts";
import { validated } from "../validate/store.ts";
import type { SqlBackend } from "./backend.ts";
import { intakesOf } from "./intake.ts";
import { queryPage } from "./paging.ts";
import { type Plan, queryRow, queryRows, type Row } from "./plan.ts";
import { pausePlan, peekPlan, restoredPlan } from "./plans/claim.ts";
import * as lists from "./plans/lists.ts";
import { agendaPlan, duePlan, findPlan, unservedPlan } from "./plans/queues.ts";
import * as reads from "./plans/reads.ts";
import { findTarget } from "./plans/target.ts";

/** In whose turn a read waits; undefined: in one of the store's own. */
type Turn = string | undefined;

/** Four reports may be lost before a process is taken for gone. */
const processTimeoutMs = 60_000;

/** The contract over a driver: encode the input, then run one plan. The entrance has looked at every argument. */
export function assembleStore(driver: SqlBackend, random: Random): Store {
  const { backend, limits, transactionBoundMs, exclusive } = driver;
  return validated({
    backend,
    limits,
    transactionBoundMs,
    exclusive,
    ...intakesOf(driver, limits),
    claim: claimOf(driver, random),
    fenced: fencedOf(driver, limits),
    read: readOf(driver, limits, random),
    health: () => driver.health(),
    onWake: (listener) => driver.onWake(listener),
    close: () => driver.close(),
  });
}

function fencedOf(driver: SqlBackend, limits: Limits): FencedOps {
  // Not an async function: handing a promise on through one costs the hot path three more turns of the microtask queue.
  const append: FencedOps["append"] = (fence, entry) => {
    try {
      checkFence(fence);
      return driver.append(fence, checkEntry(entry, limits));
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return {
    append,
    async appendAll(batch) {
      return runBatch(batch, limits, async (item) => {
        checkList("a batch's item", item);
        return append(item[0], item[1]);
      });
    },
  };
}

function claimOf(driver: SqlBackend, random: Random): ClaimOps {
  return {
    async acquire(tenant, request) {
      return (await driver.read(peekPlan(tenant, request), tenant)) ?? driver.acquire(tenant, request);
    },
    async find(request) {
      const found = await driver.read(findPlan(request), request.tenant);
      if (found.size === 0) return [];
      const terms = await driver.take([...found.keys()], request);
      if (request.share === undefined) return terms;
      return terms.map((term) => ({ ...term, callee: found.get(term.journal) ?? "" }));
    },
    async renew(renewals) {
      return renewals.length === 0 ? [] : driver.renew(renewals);
    },
    async pause(tenant, name, paused, by, auditReason, via) {
      const nonce = random.bits63();
      await driver.preempt(
        (context) => pausePlan(context, tenant, name, paused, { by, auditReason, nonce, via }),
        tenant,
      );
    },
    async restored(reason, by, via, home) {
      const act = by === undefined ? undefined : { by, reason, ...defined({ via, home }) };
      return (await driver.write(() => restoredPlan(reason, "meta.restored", act)))!;
    },
  };
}

function readOf(driver: SqlBackend, limits: Limits, random: Random): ReadOps {
  const seal = sealUnder(async () => String((await driver.read(queryRow("feed.key"), undefined))?.key), random);
  const rows = <T>(tenant: Turn, sql: string, params: Row, map: (row: Row) => T): Promise<T[]> => {
    const plan = function* (): Plan<T[]> {
      return (yield* queryRows(sql, params)).map(map);
    };
    return driver.read(plan(), tenant);
  };
  const row = <T>(tenant: Turn, sql: string, params: Row, map: (row: Row) => T): Promise<T | undefined> => {
    const plan = function* (): Plan<T | undefined> {
      const found = yield* queryRow(sql, params);
      return found === undefined ? undefined : map(found);
    };
    return driver.read(plan(), tenant);
  };
  const { pageBytes } = limits;
  const few = (limit: number) => ({ limit: pageLimit(limit, limits), pageBytes });
  type Listed = Row & { readonly limit: number };
  const list = <T>(tenant: Turn, sql: string, params: Listed, map: (row: Row) => T): Promise<Page<T>> => {
    const plan = function* (): Plan<Page<T>> {
      return mapPage(yield* queryPage(sql, { ...params, pageBytes }), map);
    };
    return driver.read(plan(), tenant);
  };
  return {
    run: (tenant, id) => driver.read(reads.runPlanById(tenant, id), tenant),
    runs: async (tenant, filter = {}) => driver.read(lists.runsPlan(tenant, filter, limits), tenant),
    spend: async (tenant, limit) => driver.read(lists.spendPlan(tenant, pageLimit(limit, limits)), tenant),
    rate: async (tenant, since, sizeMs, buckets) => driver.read(lists.ratePlan(tenant, since, sizeMs, buckets), tenant),
    progress: async (tenant, ids) => driver.read(reads.progressPlan(tenant, ids, limits), tenant),
    journal: async (tenant, target, page = {}) => driver.read(reads.journalPlan(tenant, target, page, limits), tenant),
    effects: async (tenant, filter = {}) => driver.read(reads.effectsPlan(tenant, filter, limits), tenant),
    gates: async (tenant, filter = {}) => driver.read(reads.gatesPlan(tenant, filter, limits), tenant),
    timers: async (tenant, filter = {}) => driver.read(reads.timersPlan(tenant, filter, limits), tenant),
    dueTimers: async (limit, tenant) =>
      (await driver.read(duePlan("timer", few(limit), tenant), tenant)).map((r) => ({
        ...timerRowOf(r),
        lateMs: Number(r.late_ms),
      })),
    async agenda(tenant, workflows) {
      const times = await driver.read(agendaPlan(tenant, workflows), tenant);
      return times.flatMap(({ reactor, in_ms }) =>
        in_ms === null
          ? []
          : [
              {
                reactor: (reactor ?? undefined) as string | undefined,
                dueInMs: Math.max(0, Number(in_ms)),
                lateMs: Math.max(0, -Number(in_ms)),
              },
            ],
      );
    },
    unserved: async (workflows, minLagMs, tenant) => driver.read(unservedPlan(workflows, minLagMs, tenant), tenant),
    schedules: async (tenant, { above = "", limit } = {}) =>
      list(tenant, "schedule.list", { tenant, above, limit: pageLimit(limit, limits) }, scheduleRowOf),
    dueSchedules: async (limit, tenant) =>
      (await driver.read(duePlan("schedule", few(limit), tenant), tenant)).map(scheduleRowOf),
    async budgets(tenant, run) {
      const journal = await driver.read(findTarget(tenant, { run }), tenant);
      return journal === undefined ? [] : rows(tenant, "budget.list", { run: journal }, budgetRowOf);
    },
    businessKeyOwner: (tenant, scope, businessKey) =>
      row(tenant, "business_key.find", { tenant, scope, businessKey }, claimRowOf),
    value: (tenant, key) => row(tenant, "value.get", { tenant, key }, valueRowOf),
    values: async (tenant, prefix, limit, above = "") =>
      list(tenant, "value.list", { tenant, prefix, above, limit: pageLimit(limit, limits) }, valueRowOf),
    valueHistory: async (tenant, key, after, limit) =>
      driver.read(reads.historyPlan(tenant, key, after, { limit: pageLimit(limit, limits), pageBytes }), tenant),
    lease: (tenant, target) => driver.read(reads.leasePlan(tenant, target), tenant),
    leases: async (tenant, filter = {}) =>
      rows(
        tenant,
        "lease.list",
        { tenant, held: filter.held ?? false, limit: pageLimit(filter.limit, limits) },
        leaseViewOf,
      ),
    terms: (tenant, target) => driver.read(reads.termsPlan(tenant, target), tenant),
    async feed(cursor, limit, tenant) {
      const most = pageLimit(limit, limits);
      if (tenant === undefined) return driver.feed(cursor, most, undefined);
      const cursors = await seal();
      const from = cursor === undefined ? undefined : cursors.open(tenant, cursor, driver.feedParts);
      return cursors.page(tenant, await driver.feed(from, most, tenant));
    },
    audit: async (tenant, page = {}) => driver.audit(page.before, pageLimit(page.limit, limits), tenant),
    token: (id) => row(undefined, "token.get", { id }, apiTokenOf),
    tokens: async (tenant, { above = "", limit } = {}) =>
      list(tenant, "token.list", { tenant: tenant ?? null, above, limit: pageLimit(limit, limits) }, apiTokenOf),
    quota: async (tenant) => (await row(tenant, "quota.get", { tenant }, quotaOf))!,
    quotas: async ({ above = "", limit } = {}) =>
      list(undefined, "quota.list", { above, limit: pageLimit(limit, limits) }, quotaOf),
    processes: async (tenant) =>
      list(tenant, "process.list", { tenant, olderMs: processTimeoutMs, limit: limits.pageRows }, processOf),
    settings: () => driver.settings(),
    now: async () => (await row(undefined, "meta.get", {}, (r) => Number(r.at))) ?? 0,
  };
}
