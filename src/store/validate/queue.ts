import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { checkQueueChange, checkQueueSpec } from "../../model/queue.ts";
import type { FindRequest, QueueReadOps, QueueWriteOps } from "../contract/store.ts";
import { checkAuditInfo, ifGiven, nameChecker } from "./arguments.ts";
import { checkFlag, checkList, checkName, checkObject, checkText, checkWhole } from "./entry.ts";
import { filterChecks } from "./filters.ts";
import { checkKey } from "./start-timing.ts";

/** More queues than a process can have. */
const maxQueues = 1_000;

export function checkQueueRooms(
  queues: NonNullable<FindRequest["queues"]>,
  request: FindRequest,
  limits: Limits,
): void {
  checkList("queues", queues);
  if (queues.length > maxQueues) throw bad("queues", `a find names at most ${maxQueues} queues`);
  for (const queue of queues) {
    checkObject("queues", queue);
    checkName("queues.name", queue.name, limits);
    checkWhole("queues.room", queue.room);
  }
  if (request.tenant === undefined || request.workflows === undefined) {
    throw bad("queues", "a find in queues names its tenant and its workflows");
  }
}

export function validatedQueueWrites(intake: QueueWriteOps, limits: Limits): QueueWriteOps {
  const names = nameChecker(limits);
  return {
    async putQueue(tenant, name, spec) {
      names({ tenant, queue: name });
      checkQueueSpec(name, spec);
      return intake.putQueue(tenant, name, spec);
    },
    async changeQueue(tenant, name, change, audit) {
      names({ tenant, queue: name });
      checkQueueChange(name, change);
      checkAuditInfo(audit, limits);
      return intake.changeQueue(tenant, name, change, audit);
    },
    async resetQueue(tenant, name, audit) {
      names({ tenant, queue: name });
      checkAuditInfo(audit, limits);
      return intake.resetQueue(tenant, name, audit);
    },
    async pauseQueue(tenant, name, paused, audit, key) {
      names({ tenant, queue: name });
      checkFlag("paused", paused);
      checkAuditInfo(audit, limits);
      ifGiven(key, (of) => checkKey("key", of, limits));
      return intake.pauseQueue(tenant, name, paused, audit, key);
    },
  };
}

export function validatedQueueReads(read: QueueReadOps, limits: Limits): QueueReadOps {
  const { names, page, oneOf } = filterChecks(limits);
  return {
    async queues(tenant, part = {}) {
      names({ tenant });
      page(part);
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.queues(tenant, part);
    },
    async queuePartitions(tenant, queue, part = {}) {
      names({ tenant, queue });
      page(part);
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.queuePartitions(tenant, queue, part);
    },
    async queueSlots(tenant, queue, filter = {}) {
      names({ tenant, queue });
      page(filter);
      ifGiven(filter.key, (key) => checkKey("key", key, limits));
      oneOf("state", filter.state === undefined ? undefined : [filter.state], ["QUEUED", "HELD"]);
      return read.queueSlots(tenant, queue, filter);
    },
    async queuePosition(tenant, run) {
      names({ tenant, run });
      return read.queuePosition(tenant, run);
    },
  };
}

const bad = (field: string, message: string): TapeError => new TapeError("TAPE_BAD_INPUT", message, { field });
