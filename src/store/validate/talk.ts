import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { TalkReadOps, TalkWriteOps } from "../contract/store.ts";
import { ifGiven, nameChecker } from "./arguments.ts";
import { checkObject, checkText, checkWhole } from "./entry.ts";
import { filterChecks } from "./filters.ts";

export function validatedTalkReads(read: TalkReadOps, limits: Limits): TalkReadOps {
  const { names, page } = filterChecks(limits);
  return {
    async published(tenant, run, part = {}) {
      names({ tenant, run });
      page(part);
      ifGiven(part.name, (name) => names({ name }));
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.published(tenant, run, part);
    },
    async reply(tenant, run, n) {
      names({ tenant, run });
      checkWhole("n", n, 1);
      return read.reply(tenant, run, n);
    },
  };
}

export function validatedTalkWrites(intake: TalkWriteOps, limits: Limits): TalkWriteOps {
  const names = nameChecker(limits);
  return {
    async deliver(tenant, token, body) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      names({ token });
      checkObject("body", body);
      const other = Object.keys(body).find((field) => field !== "value" && field !== "raw");
      if (other !== undefined) throw new TapeError("TAPE_BAD_INPUT", `body has no field ${other}`, { field: "body" });
      return intake.deliver(tenant, token, body);
    },
  };
}

/** Fields of a signal that the store writes: they determine which gates it may answer. */
const reservedFields = ["approves", "pos"];

export function assertNoReservedField(signal: object): void {
  const reserved = reservedFields.find((field) => Object.hasOwn(signal, field));
  if (reserved === undefined) return;
  throw new TapeError("TAPE_BAD_INPUT", `signal has no field ${reserved}`, { field: "signal" });
}
