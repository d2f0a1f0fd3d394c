// In your own project: from "durable-tape".
import type { ReactorHandler, Tape } from "../../../src/exports/index.ts";
import { escalate } from "./agent.ts";

/**
 * Escalates obligations that have been due for a day: the compensation reactor keeps trying, but an operator should know.
 * The run's id names the obligation, so each one is escalated once, however often this handler is called.
 */
export const reapOnce: ReactorHandler<Tape> = async (app, { abortSignal }) => {
  const aged = await app.obligations.list({ status: "PENDING", minAge: "24h" });
  let done = 0;
  for (const { run, pos, sub, name, changedAt } of aged) {
    if (abortSignal.aborted) break;
    await app.start(escalate, { effect: name ?? "?", since: changedAt }, { id: `aged-${run}-${pos}-${sub}` });
    done++;
  }
  return { found: aged.length, done };
};
