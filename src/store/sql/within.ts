import type { Limits } from "../../model/limits.ts";
import type { TransactionOps } from "../contract/store.ts";
import { checkStart } from "../validate/start.ts";
import type { SqlBackend } from "./backend.ts";
import { checkedSignal } from "./intake.ts";
import { signalPlan, startPlan } from "./plans/intake.ts";

/** Writes inside a transaction of the caller: the same plans, on the caller's connection. */
export function withinOf(driver: Required<Pick<SqlBackend, "callers">>, limits: Limits): TransactionOps {
  return {
    async createRun(transaction, tenant, spec) {
      const start = checkStart(spec, limits);
      const { callers } = driver;
      if (callers.prepare !== undefined) await callers.prepare(tenant);
      return callers.run(transaction, (context) => startPlan(context, tenant, start), 1);
    },
    async signal(transaction, tenant, run, { mustMatch, ...signal }) {
      const data = checkedSignal(signal, limits);
      return driver.callers.run(transaction, (context) => signalPlan(context, tenant, run, data, mustMatch), 0);
    },
    step: (source, body) => driver.callers.step(source, body),
  };
}
