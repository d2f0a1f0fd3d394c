import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { type CensusOps, maxCounted } from "../contract/store.ts";
import { nameChecker } from "./arguments.ts";
import { checkWhole } from "./entry.ts";

export function validatedCensus(read: CensusOps, limits: Limits): CensusOps {
  const names = nameChecker(limits);
  return {
    async due(reactor, cap, tenant) {
      names({ tenant, reactor });
      checkWhole("cap", cap, 1);
      if (cap > maxCounted) {
        const message = `due work is counted up to ${maxCounted}, not up to ${cap}`;
        throw new TapeError("TAPE_TOO_LARGE", message, { field: "cap" });
      }
      return read.due(reactor, cap, tenant);
    },
    async census(tenant) {
      names({ tenant });
      return read.census(tenant);
    },
  };
}
