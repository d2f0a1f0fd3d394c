// In your own project: from "durable-tape".
import { createRunner, effect, type Runner, workflow } from "../../../src/exports/index.ts";

/** Tells somebody who is on duty. The pager knows the key and rings once. */
export const page = effect("pager.ring", async (what: { text: string }) => `rang: ${what.text}`, {
  semantics: "idempotent",
});

/** One obligation that nobody has met for a day. */
export const escalate = workflow("escalate", async (tape, aged: { effect: string; since: number }) =>
  tape.effect(page.with({ text: `${aged.effect} is owed since ${new Date(aged.since).toISOString()}` })),
);

export const buildRunner = (): Runner => createRunner({ workflows: [escalate], effects: [page] });
