// In your own project: from "durable-tape".
import { createRunner, effect, type Runner, workflow } from "../../../src/exports/index.ts";

/** Pages the operator on duty. The pager deduplicates by key and rings once. */
export const page = effect("pager.ring", async (message: { text: string }) => `rang: ${message.text}`, {
  semantics: "idempotent",
});

/** Escalates one obligation that has been owed for a day. */
export const escalate = workflow("escalate", async (tape, aged: { effect: string; since: number }) =>
  tape.effect(page.with({ text: `${aged.effect} has been owed since ${new Date(aged.since).toISOString()}` })),
);

export const buildRunner = (): Runner => createRunner({ workflows: [escalate], effects: [page] });
