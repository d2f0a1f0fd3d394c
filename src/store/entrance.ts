import { TapeError } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";
import { checkAct, checkExpectation, checkTarget, namesWithin, optional } from "./calls.ts";
import {
  checkClaimant,
  checkFence,
  checkFlag,
  checkList,
  checkNonce,
  checkObject,
  checkStored,
  checkText,
  checkWhole,
} from "./check.ts";
import type { Claim, Intake, Read, Store } from "./contract.ts";

/** Enough for a chart, and not too many for one statement. */
const mostBuckets = 240;

/**
 * The entrance of every store: each argument of each call is looked at before anything else happens, so that a store
 * behind it sees only what the contract says. Types may lie, because callers may be JavaScript. What is encoded
 * (records, runs, values) is checked where it is encoded, in check.ts.
 */
export function guarded(store: Store): Store {
  const { limits } = store;
  return {
    ...store,
    intake: guardedIntake(store.intake, limits),
    claim: guardedClaim(store.claim, limits),
    read: guardedRead(store.read, limits),
    once(key) {
      checkObject("key", key);
      namesWithin(limits)({ tenant: key.tenant, key: key.key, hash: key.hash });
      return guardedIntake(store.once(key), limits);
    },
  };
}

function guardedIntake(intake: Intake, limits: Limits): Intake {
  const names = namesWithin(limits);
  return {
    async createRuns(tenant, specs, first) {
      names({ tenant });
      if (first !== undefined) {
        checkClaimant(first, limits);
        checkNonce(first.nonce);
      }
      return intake.createRuns(tenant, specs, first);
    },
    async signal(tenant, run, signal) {
      names({ tenant, run });
      checkObject("signal", signal);
      return intake.signal(tenant, run, signal);
    },
    async cancel(tenant, run, ask) {
      names({ tenant, run });
      checkObject("ask", ask);
      optional(ask.key, (key) => names({ key }));
      return intake.cancel(tenant, run, ask);
    },
    async leaveEvidence(attempt, evidence) {
      checkObject("attempt", attempt);
      checkWhole("run", attempt.run, 1);
      checkWhole("pos", attempt.pos);
      optional(attempt.sub, (sub) => checkWhole("sub", sub));
      checkNonce(attempt.token);
      checkNonce(attempt.nonce);
      checkObject("evidence", evidence);
      const other = Object.keys(evidence).find((key) => !evidenceFields.has(key));
      if (other !== undefined) {
        throw new TapeError("TAPE_BAD_INPUT", `evidence has no field ${other}`, { field: "evidence" });
      }
      return intake.leaveEvidence(attempt, evidence);
    },
    async fireTimer(timer) {
      checkObject("timer", timer);
      checkWhole("run", timer.run, 1);
      checkWhole("pos", timer.pos);
      names({ purpose: timer.purpose });
      return intake.fireTimer(timer);
    },
    async putValue(tenant, key, value, when) {
      names({ tenant, key });
      if (when !== "must_create" && when !== "unconditional") {
        checkObject("when", when);
        checkWhole("version", when.version);
      }
      return intake.putValue(tenant, key, value, when);
    },
    async deleteValue(tenant, key, version) {
      names({ tenant, key });
      checkWhole("version", version, 1);
      return intake.deleteValue(tenant, key, version);
    },
    async putSchedule(tenant, row, seen) {
      checkObject("schedule", row);
      names({ tenant, id: row.id });
      checkStored("spec", row.spec, limits);
      if (row.nextAt !== null) checkWhole("nextAt", row.nextAt);
      checkFlag("paused", row.paused);
      if (seen !== undefined && seen !== null) {
        checkObject("seen", seen);
        checkWhole("seen.version", seen.version, 1);
        checkStored("seen.spec", seen.spec, limits);
      }
      return intake.putSchedule(tenant, row, seen);
    },
    async deleteSchedule(tenant, id) {
      names({ tenant, id });
      return intake.deleteSchedule(tenant, id);
    },
    async fireSchedule(tenant, id, version, nextAt, runs, spec) {
      names({ tenant, id });
      checkWhole("version", version, 1);
      if (nextAt !== null) checkWhole("nextAt", nextAt);
      checkList("runs", runs);
      if (spec !== undefined) {
        checkObject("spec", spec);
        checkStored("spec.from", spec.from, limits);
        checkStored("spec.to", spec.to, limits);
      }
      return intake.fireSchedule(tenant, id, version, nextAt, runs, spec);
    },
    async prune(tenant, endedBefore, limit, act) {
      names({ tenant });
      optional(act, (by) => checkAct(by, limits));
      if (!Number.isFinite(endedBefore)) {
        throw new TapeError("TAPE_BAD_INPUT", "endedBefore must be a time in milliseconds", { field: "endedBefore" });
      }
      checkWhole("limit", limit, 1);
      return intake.prune(tenant, endedBefore, limit, act);
    },
    async putToken(token, act) {
      checkObject("token", token);
      const { id, tenant, name, role, hash } = token;
      names({ id, tenant, name, role, hash });
      optional(token.expiresInMs, (ms) => checkWhole("expiresInMs", ms, 1));
      checkAct(act, limits);
      return intake.putToken(token, act);
    },
    async revokeToken(tenant, id, act) {
      optional(tenant, (of) => names({ tenant: of }));
      names({ id });
      checkAct(act, limits);
      return intake.revokeToken(tenant, id, act);
    },
    async touchToken(id) {
      names({ id });
      return intake.touchToken(id);
    },
    async report(tenant, report) {
      checkObject("report", report);
      names({ tenant, owner: report.owner, label: report.label });
      return intake.report(tenant, report);
    },
    async unreport(tenant, owner) {
      names({ tenant, owner });
      return intake.unreport(tenant, owner);
    },
  };
}

const evidenceFields: ReadonlySet<string> = new Set(["happened", "value", "error"]);

function guardedClaim(claim: Claim, limits: Limits): Claim {
  const names = namesWithin(limits);
  return {
    async acquire(tenant, request) {
      names({ tenant });
      checkObject("request", request);
      checkTarget(request.target, limits);
      checkClaimant(request.claimant, limits);
      checkNonce(request.nonce);
      checkExpectation(request, limits);
      return claim.acquire(tenant, request);
    },
    async find(request) {
      checkObject("request", request);
      checkClaimant(request.claimant, limits);
      checkNonce(request.nonce);
      names({ wants: request.wants });
      checkList("staleOf", request.staleOf);
      for (const reactor of request.staleOf) names({ staleOf: reactor });
      checkWhole("limit", request.limit, 1);
      optional(request.staleLimit, (most) => checkWhole("staleLimit", most));
      optional(request.ahead, (ahead) => {
        checkObject("ahead", ahead);
        checkWhole("withinMs", ahead.withinMs);
        checkWhole("limit", ahead.limit);
      });
      optional(request.tenant, (tenant) => names({ tenant }));
      optional(request.workflows, (workflows) => {
        checkList("workflows", workflows);
        for (const workflow of workflows) names({ workflow });
      });
      return claim.find(request);
    },
    async renew(renewals) {
      checkList("renewals", renewals);
      for (const renewal of renewals) {
        checkObject("renewal", renewal);
        checkFence(renewal.fence);
        checkWhole("progress", renewal.progress);
        optional(renewal.progressNote, (note) => checkText("progressNote", note, limits));
      }
      return claim.renew(renewals);
    },
    async pause(tenant, name, paused, by, why) {
      names({ tenant, name, by, why });
      checkFlag("paused", paused);
      return claim.pause(tenant, name, paused, by, why);
    },
    async restored(reason, by) {
      names({ reason });
      optional(by, (who) => names({ by: who }));
      return claim.restored(reason, by);
    },
  };
}

function guardedRead(read: Read, limits: Limits): Read {
  const names = namesWithin(limits);
  const page = (filter: { limit?: number; run?: string }) => {
    checkObject("filter", filter);
    optional(filter.limit, (limit) => checkWhole("limit", limit, 1));
    optional(filter.run, (run) => names({ run }));
  };
  const words = (what: string, list: readonly string[] | undefined) =>
    optional(list, (given) => {
      checkList(what, given);
      for (const word of given) names({ [what]: word });
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
      optional(filter.workflow, (workflow) => names({ workflow }));
      words("status", filter.status);
      optional(filter.before, (before) => checkWhole("before", before));
      optional(filter.label, (label) => {
        checkObject("label", label);
        names({ label: label.key });
        checkText("label", label.value, limits);
      });
      for (const time of ["startedSince", "startedUntil", "endedSince", "endedUntil"] as const) {
        optional(filter[time], (at) => checkWhole(time, at));
      }
      optional(filter.below, (below) => checkWhole("below", below, 1));
      optional(filter.prefix, (prefix) => checkText("prefix", prefix, limits));
      optional(filter.doubt, (doubt) => checkFlag("doubt", doubt));
      return read.runs(tenant, filter);
    },
    async spend(tenant, limit) {
      names({ tenant });
      optional(limit, (most) => checkWhole("limit", most, 1));
      return read.spend(tenant, limit);
    },
    async rate(tenant, since, sizeMs, buckets) {
      names({ tenant });
      checkWhole("since", since);
      checkWhole("sizeMs", sizeMs, 1);
      checkWhole("buckets", buckets, 1);
      if (buckets > mostBuckets) {
        throw new TapeError("TAPE_TOO_LARGE", `at most ${mostBuckets} stretches are counted`, { field: "buckets" });
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
      optional(part.from, (from) => checkWhole("from", from));
      return read.journal(tenant, target, part);
    },
    async effects(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      words("status", filter.status);
      optional(filter.role, (role) => names({ role }));
      optional(filter.root, (root) => checkWhole("root", root, 1));
      optional(filter.below, (below) => checkWhole("below", below, 1));
      optional(filter.from, (from) => checkWhole("from", from));
      optional(filter.minAgeMs, (age) => checkWhole("minAgeMs", age));
      return read.effects(tenant, filter);
    },
    async gates(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      return read.gates(tenant, filter);
    },
    async timers(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      return read.timers(tenant, filter);
    },
    async agenda(tenant) {
      optional(tenant, (of) => names({ tenant: of }));
      return read.agenda(tenant);
    },
    async unserved(workflows, minLagMs, tenant) {
      checkList("workflows", workflows);
      words("workflows", workflows);
      checkWhole("minLagMs", minLagMs);
      optional(tenant, (of) => names({ tenant: of }));
      return read.unserved(workflows, minLagMs, tenant);
    },
    async dueTimers(limit, tenant) {
      checkWhole("limit", limit, 1);
      optional(tenant, (of) => names({ tenant: of }));
      return read.dueTimers(limit, tenant);
    },
    async schedules(tenant) {
      names({ tenant });
      return read.schedules(tenant);
    },
    async dueSchedules(limit, tenant) {
      checkWhole("limit", limit, 1);
      optional(tenant, (of) => names({ tenant: of }));
      return read.dueSchedules(limit, tenant);
    },
    async budgets(tenant, run) {
      names({ tenant, run });
      return read.budgets(tenant, run);
    },
    async claimOf(tenant, scope, businessKey) {
      names({ tenant, scope, businessKey });
      return read.claimOf(tenant, scope, businessKey);
    },
    async value(tenant, key) {
      names({ tenant, key });
      return read.value(tenant, key);
    },
    async values(tenant, prefix, limit) {
      names({ tenant });
      checkText("prefix", prefix, limits);
      return read.values(tenant, prefix, limit);
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
      return read.leases(tenant, filter);
    },
    async terms(tenant, target) {
      names({ tenant });
      checkTarget(target, limits);
      return read.terms(tenant, target);
    },
    async feed(cursor, limit, tenant) {
      if (cursor !== undefined) checkText("cursor", cursor, limits);
      optional(tenant, (of) => names({ tenant: of }));
      return read.feed(cursor, limit, tenant);
    },
    async audit(tenant, part = {}) {
      optional(tenant, (of) => names({ tenant: of }));
      page(part);
      optional(part.before, (before) => checkText("before", before, limits));
      return read.audit(tenant, part);
    },
    async token(id) {
      names({ id });
      return read.token(id);
    },
    async tokens(tenant) {
      optional(tenant, (of) => names({ tenant: of }));
      return read.tokens(tenant);
    },
    async processes(tenant) {
      names({ tenant });
      return read.processes(tenant);
    },
  };
}
