import { isBlobName } from "../../base/codec.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { effectMachine, obligationMachine } from "../../model/machines.ts";
import type { EffectFilter, ReadOps } from "../contract/store.ts";
import { validatedAdminReads } from "./admin.ts";
import { checkTarget, ifGiven, nameChecker } from "./arguments.ts";
import { validatedAgenda, validatedBuildReads } from "./builds.ts";
import { validatedCensus } from "./census.ts";
import { checkList, checkWhole } from "./entry.ts";
import { validatedEventReads } from "./events.ts";
import { validatedFeed } from "./feed.ts";
import { filterChecks } from "./filters.ts";
import { validatedLists } from "./list.ts";
import { validatedQueueReads } from "./queue.ts";
import { validatedRetentionReads } from "./retention.ts";
import { validatedStreamReads } from "./streams.ts";
import { validatedTalkReads } from "./talk.ts";

const effectStatuses = {
  effect: effectMachine.states,
  compensation: obligationMachine.states,
  any: [...new Set([...effectMachine.states, ...obligationMachine.states])],
};

export function validatedRead(read: ReadOps, limits: Limits): ReadOps {
  const { names, page } = filterChecks(limits);
  return {
    ...read,
    ...validatedLists(read, limits),
    ...validatedAdminReads(read, limits),
    ...validatedTalkReads(read, limits),
    ...validatedStreamReads(read, limits),
    ...validatedQueueReads(read, limits),
    ...validatedBuildReads(read, limits),
    ...validatedAgenda(read, limits),
    ...validatedFeed(read, limits),
    ...validatedCensus(read, limits),
    ...validatedEventReads(read, limits),
    ...validatedRetentionReads(read, limits),
    async run(tenant, id) {
      names({ tenant, id });
      return read.run(tenant, id);
    },
    async progress(tenant, ids) {
      names({ tenant });
      checkIds(ids, limits);
      return read.progress(tenant, ids);
    },
    async journal(tenant, target, part = {}) {
      names({ tenant });
      checkTarget(target, limits);
      page(part);
      ifGiven(part.from, (from) => checkWhole("from", from));
      return read.journal(tenant, target, part);
    },
    async blob(tenant, target, blob, n) {
      names({ tenant });
      checkTarget(target, limits);
      checkWhole("n", n);
      return isBlobName(blob) ? read.blob(tenant, target, blob, n) : undefined;
    },
    async effects(tenant, filter = {}) {
      names({ tenant });
      checkEffectFilter(filter, limits);
      return read.effects(tenant, filter);
    },
    ...validatedDue(read, limits),
    async businessKeyOwner(tenant, scope, businessKey) {
      names({ tenant, scope, businessKey });
      return read.businessKeyOwner(tenant, scope, businessKey);
    },
    async value(tenant, key) {
      names({ tenant, key });
      return read.value(tenant, key);
    },
    async lease(tenant, target) {
      names({ tenant });
      checkTarget(target, limits);
      return read.lease(tenant, target);
    },
  };
}

function validatedDue(read: ReadOps, limits: Limits): Pick<ReadOps, "dueTimers" | "dueSchedules"> {
  return {
    async dueTimers(limit, tenant) {
      checkDue(limit, tenant, limits);
      return read.dueTimers(limit, tenant);
    },
    async dueSchedules(limit, tenant) {
      checkDue(limit, tenant, limits);
      return read.dueSchedules(limit, tenant);
    },
  };
}

function checkDue(limit: number, tenant: string | undefined, limits: Limits): void {
  checkWhole("limit", limit, 1);
  ifGiven(tenant, (of) => nameChecker(limits)({ tenant: of }));
}

function checkIds(ids: readonly string[], limits: Limits): void {
  checkList("ids", ids);
  if (ids.length > limits.batchItems) {
    const message = `at most ${limits.batchItems} runs are read together`;
    throw new TapeError("TAPE_TOO_LARGE", message, { limit: "batchItems" });
  }
  const names = nameChecker(limits);
  for (const id of ids) names({ id });
}

function checkEffectFilter(filter: EffectFilter, limits: Limits): void {
  const { page, oneOf, cursor } = filterChecks(limits);
  page(filter);
  const { role } = filter;
  oneOf("role", role === undefined ? undefined : [role], ["effect", "compensation"]);
  oneOf("status", filter.status, effectStatuses[role ?? "any"]);
  cursor(filter.after);
  oneOf("order", filter.order === undefined ? undefined : [filter.order], ["asc", "desc"]);
  const newest = filter.order === "desc";
  if (newest && (filter.root ?? filter.item ?? filter.from) !== undefined) {
    const message = "the newest effects are listed of one run or of all; root, item and from go without order";
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "order" });
  }
  if (filter.after !== undefined && !newest && (filter.run ?? filter.item ?? filter.root) !== undefined) {
    const message = "after continues a list of all effects; those of one run continue with from";
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "after" });
  }
  ifGiven(filter.item, (item) => checkWhole("item", item));
  ifGiven(filter.root, (root) => checkWhole("root", root, 1));
  ifGiven(filter.below, (below) => checkWhole("below", below, 1));
  ifGiven(filter.from, (from) => checkWhole("from", from));
  ifGiven(filter.minAgeMs, (age) => checkWhole("minAgeMs", age));
}
