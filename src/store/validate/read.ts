import { suggest } from "../../base/suggest.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { effectMachine, obligationMachine, runStatuses } from "../../model/machines.ts";
import type { ReadOps } from "../contract/store.ts";
import { placeIn } from "../list-cursors.ts";
import { checkTarget, ifGiven, nameChecker } from "./arguments.ts";
import { checkFlag, checkList, checkObject, checkText, checkWhole } from "./entry.ts";

const effectStatuses = {
  effect: effectMachine.states,
  compensation: obligationMachine.states,
  any: [...new Set([...effectMachine.states, ...obligationMachine.states])],
};

/** Enough for a chart, and not too many for one statement. */
const maxBuckets = 240;

/** Cursors are the store's own text: no limit of names may refuse one. */
const longestCursor = 512;

/** The entrance of what only reads: see entrance.ts. */
export function validatedRead(read: ReadOps, limits: Limits): ReadOps {
  const names = nameChecker(limits);
  const page = (filter: { limit?: number; run?: string }) => {
    checkObject("filter", filter);
    ifGiven(filter.limit, (limit) => checkWhole("limit", limit, 1));
    ifGiven(filter.run, (run) => names({ run }));
  };
  const words = (what: string, list: readonly string[] | undefined) =>
    ifGiven(list, (given) => {
      checkList(what, given);
      for (const word of given) names({ [what]: word });
    });
  const oneOf = (what: string, list: readonly string[] | undefined, known: readonly string[]) =>
    ifGiven(list, (given) => {
      words(what, given);
      const strange = given.find((word) => !known.includes(word));
      if (strange === undefined) return;
      const near = known.find((word) => word === strange.toUpperCase()) ?? suggest(strange, known);
      const hint = near === undefined ? "" : `; did you mean ${near}?`;
      const message = `${what} is ${known.join(", ")}, not ${strange.slice(0, 64)}${hint}`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: what });
    });
  const cursor = (given: string | undefined) =>
    ifGiven(given, (after) => {
      checkText("after", after, limits);
      placeIn(after);
    });
  return {
    ...read,
    async run(tenant, id) {
      names({ tenant, id });
      return read.run(tenant, id);
    },
    async runs(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      ifGiven(filter.workflow, (workflow) => names({ workflow }));
      oneOf("status", filter.status, runStatuses);
      ifGiven(filter.before, (before) => checkWhole("before", before));
      ifGiven(filter.label, (label) => {
        checkObject("label", label);
        names({ label: label.key });
        checkText("label", label.value, limits);
      });
      for (const time of ["startedSince", "startedUntil", "endedSince", "endedUntil"] as const) {
        ifGiven(filter[time], (at) => checkWhole(time, at));
      }
      ifGiven(filter.below, (below) => checkWhole("below", below, 1));
      ifGiven(filter.prefix, (prefix) => checkText("prefix", prefix, limits));
      ifGiven(filter.inDoubt, (doubt) => checkFlag("doubt", doubt));
      return read.runs(tenant, filter);
    },
    async spend(tenant, limit) {
      names({ tenant });
      ifGiven(limit, (most) => checkWhole("limit", most, 1));
      return read.spend(tenant, limit);
    },
    async rate(tenant, since, sizeMs, buckets) {
      names({ tenant });
      checkWhole("since", since);
      checkWhole("sizeMs", sizeMs, 1);
      checkWhole("buckets", buckets, 1);
      if (buckets > maxBuckets) {
        throw new TapeError("TAPE_TOO_LARGE", `at most ${maxBuckets} stretches are counted`, { field: "buckets" });
      }
      return read.rate(tenant, since, sizeMs, buckets);
    },
    async progress(tenant, ids) {
      names({ tenant });
      checkList("ids", ids);
      if (ids.length > limits.batchItems) {
        const message = `at most ${limits.batchItems} runs are looked at together`;
        throw new TapeError("TAPE_TOO_LARGE", message, { limit: "batchItems" });
      }
      for (const id of ids) names({ id });
      return read.progress(tenant, ids);
    },
    async journal(tenant, target, part = {}) {
      names({ tenant });
      checkTarget(target, limits);
      page(part);
      ifGiven(part.from, (from) => checkWhole("from", from));
      return read.journal(tenant, target, part);
    },
    async effects(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      const { role } = filter;
      oneOf("role", role === undefined ? undefined : [role], ["effect", "compensation"]);
      oneOf("status", filter.status, effectStatuses[role ?? "any"]);
      cursor(filter.after);
      if (filter.after !== undefined && (filter.run ?? filter.item ?? filter.root) !== undefined) {
        const message = "after continues a list of all effects; those of one run continue with from";
        throw new TapeError("TAPE_BAD_INPUT", message, { field: "after" });
      }
      ifGiven(filter.item, (item) => checkWhole("item", item));
      ifGiven(filter.root, (root) => checkWhole("root", root, 1));
      ifGiven(filter.below, (below) => checkWhole("below", below, 1));
      ifGiven(filter.from, (from) => checkWhole("from", from));
      ifGiven(filter.minAgeMs, (age) => checkWhole("minAgeMs", age));
      return read.effects(tenant, filter);
    },
    async gates(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      ifGiven(filter.open, (open) => checkFlag("open", open));
      cursor(filter.after);
      return read.gates(tenant, filter);
    },
    async timers(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      return read.timers(tenant, filter);
    },
    async agenda(tenant, workflows) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      words("workflows", workflows);
      return read.agenda(tenant, workflows);
    },
    async unserved(workflows, minLagMs, tenant) {
      checkList("workflows", workflows);
      words("workflows", workflows);
      checkWhole("minLagMs", minLagMs);
      ifGiven(tenant, (of) => names({ tenant: of }));
      return read.unserved(workflows, minLagMs, tenant);
    },
    async dueTimers(limit, tenant) {
      checkWhole("limit", limit, 1);
      ifGiven(tenant, (of) => names({ tenant: of }));
      return read.dueTimers(limit, tenant);
    },
    async schedules(tenant, part = {}) {
      names({ tenant });
      page(part);
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.schedules(tenant, part);
    },
    async dueSchedules(limit, tenant) {
      checkWhole("limit", limit, 1);
      ifGiven(tenant, (of) => names({ tenant: of }));
      return read.dueSchedules(limit, tenant);
    },
    async budgets(tenant, run) {
      names({ tenant, run });
      return read.budgets(tenant, run);
    },
    async businessKeyOwner(tenant, scope, businessKey) {
      names({ tenant, scope, businessKey });
      return read.businessKeyOwner(tenant, scope, businessKey);
    },
    async value(tenant, key) {
      names({ tenant, key });
      return read.value(tenant, key);
    },
    async values(tenant, prefix, limit, above) {
      names({ tenant });
      checkText("prefix", prefix, limits);
      ifGiven(above, (key) => checkText("above", key, limits));
      return read.values(tenant, prefix, limit, above);
    },
    async valueHistory(tenant, key, after, limit) {
      names({ tenant, key });
      checkWhole("after", after);
      return read.valueHistory(tenant, key, after, limit);
    },
    async lease(tenant, target) {
      names({ tenant });
      checkTarget(target, limits);
      return read.lease(tenant, target);
    },
    async leases(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      ifGiven(filter.held, (held) => checkFlag("held", held));
      return read.leases(tenant, filter);
    },
    async terms(tenant, target) {
      names({ tenant });
      checkTarget(target, limits);
      return read.terms(tenant, target);
    },
    async feed(cursor, limit, tenant) {
      if (cursor !== undefined) checkText("cursor", cursor, { ...limits, nameLength: longestCursor });
      ifGiven(tenant, (of) => names({ tenant: of }));
      return read.feed(cursor, limit, tenant);
    },
    async audit(tenant, part = {}) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      page(part);
      ifGiven(part.before, (before) => checkText("before", before, limits));
      return read.audit(tenant, part);
    },
    async token(id) {
      names({ id });
      return read.token(id);
    },
    async tokens(tenant, part = {}) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      page(part);
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.tokens(tenant, part);
    },
    async quota(tenant) {
      names({ tenant });
      return read.quota(tenant);
    },
    async quotas(part = {}) {
      page(part);
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.quotas(part);
    },
    async processes(tenant) {
      names({ tenant });
      return read.processes(tenant);
    },
  };
}
