import type { Limits } from "../../model/limits.ts";
import type { TransactionOps } from "../contract/store.ts";
import { nameChecker } from "./arguments.ts";
import { checkSignal } from "./intake.ts";

export function validatedWithin(within: TransactionOps, limits: Limits): TransactionOps {
  const names = nameChecker(limits);
  return {
    async createRun(transaction, tenant, spec) {
      names({ tenant });
      return within.createRun(transaction, tenant, spec);
    },
    async signal(transaction, tenant, run, signal) {
      names({ tenant, run });
      checkSignal(signal);
      return within.signal(transaction, tenant, run, signal);
    },
    step: (source, body) => within.step(source, body),
  };
}
