// In your own project: from "durable-tape".
import type { ReactorHandler, Tape } from "../../../src/exports/index.ts";
import { escalate } from "./agent.ts";

/**
 * Obligations that are due and have not been met for a day: the compensation reactor does what it can, so somebody must
 * hear of it. The run's id names the obligation, so that however often this is called, each is escalated once.
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
