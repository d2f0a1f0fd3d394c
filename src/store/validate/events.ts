import { letterStates, type NewDeadLetter } from "../../model/dead-letter.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { EventReadOps, EventWriteOps, FencedOps } from "../contract/store.ts";
import { letterPlace } from "../list-cursors.ts";
import { checkAuditInfo, checkBatch, ifGiven, nameChecker } from "./arguments.ts";
import { checkFence, checkFlag, checkList, checkObject, checkStored, checkText, checkWhole } from "./entry.ts";
import { filterChecks } from "./filters.ts";

/** Appends are checked where they are encoded. */
export function validatedFenced(fenced: FencedOps, limits: Limits): FencedOps {
  const names = nameChecker(limits);
  return {
    ...fenced,
    async checkpoint(fence, text) {
      checkFence(fence);
      if (text !== null) checkCheckpoint(text, limits);
      return fenced.checkpoint(fence, text);
    },
    async deadLetter(fence, letter) {
      checkFence(fence);
      checkLetter(letter, limits);
      return fenced.deadLetter(fence, letter);
    },
    async letterSent(fence, event) {
      checkFence(fence);
      names({ event });
      return fenced.letterSent(fence, event);
    },
  };
}

export function checkCheckpoint(text: string, limits: Limits): void {
  checkStored("checkpoint", text, limits);
  const bytes = Buffer.byteLength(text);
  if (bytes <= limits.checkpointBytes) return;
  const message = `a checkpoint takes ${bytes} bytes, at most ${limits.checkpointBytes} are allowed`;
  throw new TapeError("TAPE_TOO_LARGE", message, { field: "checkpoint", limit: "checkpointBytes" });
}

function checkLetter(letter: NewDeadLetter, limits: Limits): void {
  checkObject("letter", letter);
  nameChecker(limits)({ event: letter.event, kind: letter.kind, code: letter.code });
  checkText("error", letter.error, limits);
  checkWhole("journal", letter.journal, 1);
  checkWhole("seq", letter.seq, 1);
  checkFlag("inbox", letter.inbox);
  checkWhole("attempts", letter.attempts);
}

export function validatedEventWrites(intake: EventWriteOps, limits: Limits): EventWriteOps {
  const { names, oneOf } = filterChecks(limits);
  return {
    async settleLetters(tenant, sink, to, events, audit) {
      names({ tenant, sink });
      oneOf("to", [to], ["REPLAY", "DISCARDED"]);
      ifGiven(events, (list) => {
        checkBatch(list, limits);
        for (const event of list) names({ event });
      });
      checkAuditInfo(audit, limits);
      return intake.settleLetters(tenant, sink, to, events, audit);
    },
  };
}

/** A cursor of dead letters is an event's id behind a time. */
const maxTimeDigits = 16;

export function validatedEventReads(read: EventReadOps, limits: Limits): EventReadOps {
  const { names, page, oneOf } = filterChecks(limits);
  return {
    async deadLetters(tenant, sink, part = {}) {
      names({ tenant, sink });
      page(part);
      oneOf("state", part.state === undefined ? undefined : [part.state], letterStates);
      ifGiven(part.after, (after) => {
        checkText("after", after, { ...limits, nameLength: limits.nameLength + maxTimeDigits });
        letterPlace(after);
      });
      return read.deadLetters(tenant, sink, part);
    },
    async subjects(tenant, journals) {
      names({ tenant });
      checkList("journals", journals);
      checkBatch(journals, limits);
      for (const journal of journals) checkWhole("journals", journal, 1);
      return read.subjects(tenant, journals);
    },
    async sinks(tenant, part = {}) {
      names({ tenant });
      page(part);
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.sinks(tenant, part);
    },
  };
}
