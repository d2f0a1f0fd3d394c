import { encode } from "../../base/codec.ts";
import { callbackOf } from "../../model/callback-token.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import { storeJournal } from "../../model/journal-numbers.ts";
import type { Limits } from "../../model/limits.ts";
import { deadlineTimer } from "../../model/projection.ts";
import { everyTenant } from "../../model/quota.ts";
import type { RecordData } from "../../model/records.ts";
import type {
  AdminWriteOps,
  ErasureOps,
  EventWriteOps,
  IdempotencyKey,
  IntakeOps,
  QueueWriteOps,
} from "../contract/store.ts";
import type { OpenSeal } from "../cursor-seal.ts";
import { valueRowOf } from "../decode-rows.ts";
import { checkBatch, runBatch, unknownCallback } from "../validate/arguments.ts";
import { checkPayload, checkReport, checkRunSpec, encodeRecord, toItemResult } from "../validate/entry.ts";
import { checkStart } from "../validate/start.ts";
import type { SqlBackend } from "./backend.ts";
import { type Plan, type PlanContext, query, queryRow } from "./plan.ts";
import { auditPlan, operatorActionBy } from "./plans/audit.ts";
import { reportBuildPlan, setCurrentBuildPlan } from "./plans/builds.ts";
import { deliverOnce, deliverPlan } from "./plans/callback.ts";
import { erasePlan } from "./plans/erase.ts";
import type { ErasePlace } from "./plans/erase-records.ts";
import { settleLettersPlan } from "./plans/events.ts";
import * as plans from "./plans/intake.ts";
import { prunePlan } from "./plans/prune.ts";
import { changeQueuePlan, pauseQueuePlan, putQueuePlan } from "./plans/queues.ts";
import { beginMeterPlan, flagRunsPlan, keepCountPlan, meterPlan, recountPlan, setQuotaPlan } from "./plans/quotas.ts";
import { requestRetentionPlan } from "./plans/retention.ts";
import {
  idempotentPlan,
  purgePlan,
  putTokenPlan,
  type ResultStorage,
  reportPlan,
  revokeTokenPlan,
} from "./plans/service.ts";
import { streamTokenPlan } from "./plans/streams.ts";

/** One write of the intake, by name and in its tenant's turn. */
type Write = <T>(
  [what, tenant]: readonly [what: string, tenant?: string | undefined],
  make: (context: PlanContext) => Plan<T>,
  storage?: ResultStorage<T>,
) => Promise<T>;

export interface Intakes {
  readonly intake: IntakeOps;
  once(key: IdempotencyKey): IntakeOps;
}

/**
 * Old results are purged once per this many calls: that costs next to nothing, and at most as many have accumulated.
 */
const callsPerPurge = 128;

export function intakesOf(driver: SqlBackend, limits: Limits, secrets: Secrets): Intakes {
  let calls = 0;
  const writeOnce =
    (key: IdempotencyKey): Write =>
    async ([what, tenant], make, storage) => {
      // One key for two kinds of calls is a mistake that the caller's hash may not show.
      const request = { ...key, hash: `${what} ${key.hash}` };
      const result = await driver.write((context) => idempotentPlan(request, make(context), storage), tenant);
      // Also at the first call: a short-lived process must not leave its rows behind.
      if (calls++ % callsPerPurge === 0) await driver.write(purgePlan).catch(() => {}); // the next purge finds them
      if (result instanceof TapeError) throw result;
      return result;
    };
  const written = intakeOf(driver, limits, secrets, ([, tenant], make) => driver.write(make, tenant));
  const plain: IntakeOps =
    driver.fire === undefined
      ? written
      : {
          ...written,
          // The batch leaves the note timer.fired; the timer of a deadline leaves another.
          fireTimer: async (tenant, { run, pos, purpose }) =>
            purpose === deadlineTimer.purpose
              ? written.fireTimer(tenant, { run, pos, purpose })
              : driver.fire!({ tenant, run, pos, purpose }),
        };
  return {
    intake: plain,
    once(key) {
      const write = writeOnce(key);
      return {
        ...intakeOf(driver, limits, secrets, write),
        async createRuns(tenant, specs, first) {
          if (first !== undefined) return plain.createRuns(tenant, specs, first);
          checkBatch(specs, limits);
          const runs = specs.map((spec) => toItemResult(() => checkStart(spec, limits, specs.length)));
          const create = (context: PlanContext) => plans.createAllPlan(context, tenant, runs);
          return write(["createRuns", tenant], create, { refused: (results) => results.every(({ ok }) => !ok) });
        },
      };
    },
  };
}

/** Four reports a minute: rows of dead processes are deleted every five minutes. */
const purgeEveryReports = 20;

/** What derives from keys of the store, which are read once. */
export interface Secrets {
  readonly secret: () => Promise<string>;
  readonly seal: OpenSeal;
}

function intakeOf(driver: SqlBackend, limits: Limits, { secret, seal }: Secrets, write: Write): IntakeOps {
  return {
    ...adminWritesOf(driver, limits, seal, write),
    ...queueWritesOf(write),
    reportBuild: async (tenant, build, workflows) =>
      driver.write(() => reportBuildPlan(limits, tenant, build, workflows), tenant),
    setCurrentBuild: async (tenant, build, audit) =>
      write(["setCurrentBuild", tenant], (context) => setCurrentBuildPlan(context, tenant, build, audit)),
    ...eventWritesOf(write),
    ...erasureOf(limits, seal, write),
    async createRuns(tenant, specs, first) {
      const results = await runBatch(specs, limits, async (spec) => {
        const start = checkStart(spec, limits);
        if (start.signals.length === 0) return driver.create(tenant, start.data, first);
        return driver.write((context) => plans.startPlan(context, tenant, start, first), tenant);
      });
      const refused = results.some((result) => !result.ok && isTapeError(result.error, "TAPE_QUOTA"));
      if (refused) await driver.write(() => keepCountPlan(tenant), tenant).catch(() => {}); // the next rejection counts again
      return results;
    },
    async signal(tenant, run, { mustMatch, ...signal }) {
      const data = checkedSignal(signal, limits);
      return write(["signal", tenant], (context) => plans.signalPlan(context, tenant, run, data, mustMatch));
    },
    async deliver(tenant, token, body) {
      for (const value of Object.values(body))
        encodeRecord({ kind: "signal.sent", data: { name: "callback", value } }, limits);
      const ref = callbackOf(await secret(), token);
      if (ref === undefined) throw unknownCallback();
      return deliverOnce(() => write(["deliver", tenant], (context) => deliverPlan(context, tenant, ref, body)));
    },
    async streamToken(tenant, run, stream, ttlMs) {
      return driver.read(streamTokenPlan(await secret(), { tenant, run, stream }, ttlMs), tenant);
    },
    async cancel(tenant, run, { key, ...request }) {
      const data = definedOnly(request);
      encodeRecord({ kind: "cancel.requested", data }, limits);
      return write(["cancel", tenant], (context) => plans.cancelPlan(context, tenant, run, data, key));
    },
    async leaveEvidence(tenant, attempt, evidence) {
      const { run, pos, token } = attempt;
      const data = definedOnly(evidence);
      encodeRecord({ kind: "effect.evidence", data: { ...data, run, pos, attempt: 0, token: String(token) } }, limits);
      return write(["leaveEvidence", tenant], (context) => plans.evidencePlan(context, tenant, attempt, data));
    },
    async fireTimer(tenant, { run, pos, purpose }) {
      return write(["fireTimer", tenant], (context) => plans.fireTimerPlan(context, { tenant, run, pos, purpose }));
    },
    async putValue(tenant, key, value, when) {
      const text = checkPayload("value", () => encode(value), limits);
      const put = (context: PlanContext) => plans.putValuePlan(context, tenant, key, text, when);
      return valueRowOf(await write(["putValue", tenant], put, plans.withoutValue(tenant, key, text)));
    },
    async deleteValue(tenant, key, version) {
      const when = { version };
      return valueRowOf(
        await write(["deleteValue", tenant], (context) => plans.putValuePlan(context, tenant, key, null, when)),
      );
    },
    async requestRetention(tenant, audit) {
      return write(["requestRetention", tenant], (context) => requestRetentionPlan(context, tenant, audit));
    },
    async fireSchedule(tenant, id, version, nextAt, runs, spec) {
      const specs = runs.map((run) => checkRunSpec(run, limits));
      const firing = { tenant, id, version, nextAt, spec };
      return write(["fireSchedule", tenant], (context) => plans.fireSchedulePlan(context, firing, specs));
    },
  };
}

function erasureOf(limits: Limits, seal: OpenSeal, write: Write): ErasureOps {
  return {
    async eraseRun(tenant, id, { tree = false, after, ...audit }) {
      const cursors = await seal();
      const scope = `erasure of ${id} of ${tenant}`;
      const place = after === undefined ? undefined : erasePlaceOf(cursors.open(scope, after, 3));
      const request = { tenant, id, tree, audit, after: place };
      const { next, ...part } = await write(["eraseRun", tenant], () => erasePlan(request, limits));
      if (next === undefined) return part;
      const [cursor] = cursors.seal(scope, [`${next.run}.${next.journal}.${next.seq}`]);
      return { ...part, next: cursor! };
    },
  };
}

/** The cursor of an erasure has three numbers. */
function erasePlaceOf(position: string): ErasePlace {
  const [run = 0, journal = 0, seq = 0] = position.split(".").map(Number);
  return { run, journal, seq };
}

/** The signal without undefined fields, once its record is known to be valid. */
export function checkedSignal(signal: Parameters<IntakeOps["signal"]>[2], limits: Limits): RecordData<"signal.sent"> {
  const data = definedOnly(signal);
  encodeRecord({ kind: "signal.sent", data }, limits);
  return data;
}

function adminWritesOf(driver: SqlBackend, limits: Limits, seal: OpenSeal, write: Write): AdminWriteOps {
  let reports = 0;
  return {
    async putSchedule(tenant, row, seen, audit) {
      return write(["putSchedule", tenant], (context) => plans.putSchedulePlan(context, tenant, row, seen, audit));
    },
    async deleteSchedule(tenant, id) {
      return write(["deleteSchedule", tenant], function* (): Plan<boolean> {
        return (yield* query("schedule.delete", { tenant, id })).count > 0;
      });
    },
    async prune(tenant, endedBefore, limit, audit, past = false) {
      const cursors = past ? undefined : await seal();
      const open = cursors && ((cursor: string) => cursors.open(tenant, cursor, driver.feedParts));
      const request = { tenant, before: Math.floor(endedBefore), limit, audit, open };
      return write(["prune", tenant], () => prunePlan(request));
    },
    async setQuota(tenant = everyTenant, change, audit) {
      // Counting and measuring start first: an effective limit must find them in progress.
      if (typeof change.bytes === "number") await driver.write(beginMeterPlan);
      const set = await write(["setQuota"], () => setQuotaPlan(tenant, change, audit));
      if (typeof (change.runs ?? change.bytes) === "number") {
        let after: number | undefined = 0;
        while (after !== undefined) after = await driver.write(() => flagRunsPlan(after!));
        await driver.write(() => recountPlan(tenant));
      }
      if (typeof change.bytes === "number") while (!(await driver.write(() => meterPlan())));
      return set;
    },
    async putToken(token, audit) {
      return write(["putToken"], () => putTokenPlan(token, audit));
    },
    async revokeToken(tenant, id, audit) {
      return write(["revokeToken"], () => revokeTokenPlan(tenant, id, audit));
    },
    async recordAudit(tenant, action, audit, detail) {
      const data = operatorActionBy(action, audit, detail);
      const body = encodeRecord({ kind: "operator.action", data }, limits);
      return write(["recordAudit", tenant], () => auditPlan({ tenant, journal: storeJournal, subject: null, body }));
    },
    async touchToken(id) {
      await driver.write(() => query("token.touch", { id }));
    },
    async reportProcess(tenant, report) {
      const { owner, label } = report;
      const body = checkReport(report, limits);
      const purges = reports++ % purgeEveryReports === 0;
      await driver.writeRepeatable(() => reportPlan({ tenant, owner, label, body }, purges), tenant);
    },
    async removeProcess(tenant, owner) {
      await driver.writeRepeatable(() => query("process.drop", { tenant, owner }), tenant);
    },
  };
}

/** The secret of the store's callbacks, read once. */
export function storeSecret(driver: SqlBackend): () => Promise<string> {
  let known: string | undefined;
  return async () => {
    known ??= String((await driver.read(queryRow("meta.secret"), undefined))?.secret);
    return known;
  };
}

function eventWritesOf(write: Write): EventWriteOps {
  return {
    async settleLetters(tenant, sink, to, events, audit) {
      return write(["settleLetters", tenant], (context) =>
        settleLettersPlan(context, { tenant, sink, to }, events, audit),
      );
    },
  };
}

function queueWritesOf(write: Write): QueueWriteOps {
  return {
    async putQueue(tenant, name, spec) {
      return write(["putQueue", tenant], (context) => putQueuePlan(context, tenant, name, spec));
    },
    async changeQueue(tenant, name, change, audit) {
      return write(["changeQueue", tenant], (context) => changeQueuePlan(context, tenant, name, change, audit));
    },
    async resetQueue(tenant, name, audit) {
      return write(["resetQueue", tenant], (context) => changeQueuePlan(context, tenant, name, undefined, audit));
    },
    async pauseQueue(tenant, name, paused, audit, key) {
      return write(["pauseQueue", tenant], (context) => pauseQueuePlan(context, tenant, name, paused, audit, key));
    },
  };
}

function definedOnly<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([key, v]) => v !== undefined || key === "value")) as T;
}
