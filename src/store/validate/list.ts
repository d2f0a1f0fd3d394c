import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { runStatuses } from "../../model/machines.ts";
import type { ListOps, RunFilter } from "../contract/store.ts";
import { checkTarget, ifGiven } from "./arguments.ts";
import { checkFlag, checkObject, checkText, checkWhole } from "./entry.ts";
import { filterChecks } from "./filters.ts";
import { checkLabel, checkLabelFilter } from "./labels.ts";
import { validatedLeaseList } from "./lease-list.ts";

/** Enough for a chart, and few enough for one statement. */
const maxBuckets = 240;

export function validatedLists(read: ListOps, limits: Limits): ListOps {
  const { names, page, cursor } = filterChecks(limits);
  return {
    ...validatedLeaseList(read, limits),
    async runs(tenant, filter = {}) {
      names({ tenant });
      checkRunFilter(filter, limits);
      return read.runs(tenant, filter);
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
    async schedules(tenant, part = {}) {
      names({ tenant });
      page(part);
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.schedules(tenant, part);
    },
    async budgets(tenant, run) {
      names({ tenant, run });
      return read.budgets(tenant, run);
    },
    async spend(tenant, limit) {
      names({ tenant });
      ifGiven(limit, (max) => checkWhole("limit", max, 1));
      return read.spend(tenant, limit);
    },
    async rate(tenant, since, sizeMs, buckets) {
      names({ tenant });
      checkBuckets(since, sizeMs, buckets);
      return read.rate(tenant, since, sizeMs, buckets);
    },
    async values(tenant, prefix, limit, above, order) {
      names({ tenant });
      checkText("prefix", prefix, limits);
      ifGiven(above, (key) => checkText("above", key, limits));
      ifGiven(order, (given) => {
        if (given === "asc" || given === "desc") return;
        throw new TapeError("TAPE_BAD_INPUT", "order is asc or desc", { field: "order" });
      });
      return read.values(tenant, prefix, limit, above, order);
    },
    async valueHistory(tenant, key, after, limit) {
      names({ tenant, key });
      checkWhole("after", after);
      return read.valueHistory(tenant, key, after, limit);
    },
    async terms(tenant, target) {
      names({ tenant });
      checkTarget(target, limits);
      return read.terms(tenant, target);
    },
    async audit(tenant, part = {}) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      page(part);
      ifGiven(part.before, (before) => checkText("before", before, limits));
      return read.audit(tenant, part);
    },
  };
}

function checkBuckets(since: number, sizeMs: number, buckets: number): void {
  checkWhole("since", since);
  checkWhole("sizeMs", sizeMs, 1);
  checkWhole("buckets", buckets, 1);
  if (buckets > maxBuckets) {
    throw new TapeError("TAPE_TOO_LARGE", `at most ${maxBuckets} intervals are counted`, { field: "buckets" });
  }
}

function checkRunFilter(filter: RunFilter, limits: Limits): void {
  const { names, page, oneOf } = filterChecks(limits);
  page(filter);
  ifGiven(filter.workflow, (workflow) => names({ workflow }));
  oneOf("status", filter.status, runStatuses);
  ifGiven(filter.before, (before) => checkWhole("before", before));
  ifGiven(filter.label, (label) => {
    checkObject("label", label);
    checkLabel("label", label.key, label.value, limits);
  });
  ifGiven(filter.labels, (labels) => checkLabelFilter(labels, limits));
  for (const time of ["startedSince", "startedUntil", "endedSince", "endedUntil"] as const) {
    ifGiven(filter[time], (at) => checkWhole(time, at));
  }
  ifGiven(filter.below, (below) => checkWhole("below", below, 1));
  ifGiven(filter.prefix, (prefix) => checkText("prefix", prefix, limits));
  ifGiven(filter.inDoubt, (inDoubt) => checkFlag("inDoubt", inDoubt));
}
