import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { IntakeOps } from "../contract/store.ts";
import { validatedAdminWrites } from "./admin.ts";
import { ifGiven, nameChecker } from "./arguments.ts";
import { validatedBuildWrites } from "./builds.ts";
import { checkClaimant, checkList, checkNonce, checkObject, checkStored, checkWhole } from "./entry.ts";
import { validatedEventWrites } from "./events.ts";
import { validatedQueueWrites } from "./queue.ts";
import { validatedRetentionWrites } from "./retention.ts";
import { checkSchedule } from "./schedule.ts";
import { validatedStreamTokens } from "./streams.ts";
import { assertNoReservedField, validatedTalkWrites } from "./talk.ts";

type Evidence = Parameters<IntakeOps["leaveEvidence"]>;
const evidenceFields: ReadonlySet<string> = new Set(["happened", "value", "error"]);

export function validatedIntake(intake: IntakeOps, limits: Limits): IntakeOps {
  const names = nameChecker(limits);
  return {
    ...validatedAdminWrites(intake, limits),
    ...validatedTalkWrites(intake, limits),
    ...validatedStreamTokens(intake, limits),
    ...validatedQueueWrites(intake, limits),
    ...validatedBuildWrites(intake, limits),
    ...validatedEventWrites(intake, limits),
    ...validatedRetentionWrites(intake, limits),
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
      checkSignal(signal);
      return intake.signal(tenant, run, signal);
    },
    async cancel(tenant, run, request) {
      names({ tenant, run });
      checkCancel(request);
      ifGiven(request.key, (key) => names({ key }));
      return intake.cancel(tenant, run, request);
    },
    async leaveEvidence(tenant, attempt, evidence) {
      names({ tenant });
      checkAttempt(attempt);
      checkEvidence(evidence);
      return intake.leaveEvidence(tenant, attempt, evidence);
    },
    async fireTimer(tenant, timer) {
      names({ tenant });
      checkObject("timer", timer);
      checkWhole("run", timer.run, 1);
      checkWhole("pos", timer.pos);
      names({ purpose: timer.purpose });
      return intake.fireTimer(tenant, timer);
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
    async fireSchedule(tenant, id, version, nextAt, runs, spec) {
      names({ tenant, id });
      checkWhole("version", version, 1);
      if (nextAt !== null) checkWhole("nextAt", nextAt);
      checkList("runs", runs);
      if (spec !== undefined) {
        checkObject("spec", spec);
        checkStored("spec.from", spec.from, limits);
        checkSchedule("spec.to", id, spec.to, limits);
      }
      return intake.fireSchedule(tenant, id, version, nextAt, runs, spec);
    },
  };
}

/** The store determines which gates a signal may answer. */
export function checkSignal(signal: Parameters<IntakeOps["signal"]>[2]): void {
  checkObject("signal", signal);
  assertNoReservedField(signal);
  if (signal.mustMatch === undefined || signal.mustMatch === true) return;
  throw new TapeError("TAPE_BAD_INPUT", "mustMatch is true or absent", { field: "mustMatch" });
}

function checkCancel(request: Parameters<IntakeOps["cancel"]>[2]): void {
  checkObject("request", request);
  // Only the firing of the run's deadline timer writes it.
  if (!Object.hasOwn(request, "deadline")) return;
  throw new TapeError("TAPE_BAD_INPUT", "request has no field deadline", { field: "request" });
}

function checkAttempt(attempt: Evidence[1]): void {
  checkObject("attempt", attempt);
  checkWhole("run", attempt.run, 1);
  checkWhole("pos", attempt.pos);
  ifGiven(attempt.sub, (sub) => checkWhole("sub", sub));
  checkNonce(attempt.token);
  checkNonce(attempt.nonce);
}

function checkEvidence(evidence: Evidence[2]): void {
  checkObject("evidence", evidence);
  const other = Object.keys(evidence).find((key) => !evidenceFields.has(key));
  if (other !== undefined) {
    throw new TapeError("TAPE_BAD_INPUT", `evidence has no field ${other}`, { field: "evidence" });
  }
}
