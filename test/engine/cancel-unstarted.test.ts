import { describe, expect } from "vitest";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { onBothStores } from "../kit/both-stores.ts";

const both = onBothStores();

describe("a run whose workflow no process has", () => {
  both("is ended by a second cancel if the process of the first one crashed", async (open) => {
    const t = await open(createRunner({ workflows: [workflow("here", async () => 1)] }));
    const { store, time, tape } = t;
    const { tenant } = tape;
    const statusOf = async () => (await time.during(tape.runs.get("lost")))?.status;
    await time.during(store.intake.createRuns(tenant, [{ id: "lost", workflow: "nowhere", input: 1 }]));
    // The first process acquired the lease and crashed.
    const claimant = { owner: "dead", label: "dead", reactor: "recovery", ttlMs: 5_000 };
    const request = { target: { run: "lost" }, claimant, nonce: 7n, expect: "free" } as const;
    await time.during(store.claim.acquire(tenant, request));
    await time.during(tape.cancel("lost", { reason: "a slip" }));
    expect(await statusOf()).toBe("RUNNING");
    await t.elapse(5_001);
    await time.during(tape.cancel("lost", { reason: "it is still there" }));
    expect(await statusOf()).toBe("CANCELLED");
    const journal = await time.during(store.read.journal(tenant, { run: "lost" }));
    expect(journal.map(({ kind }) => kind)).toEqual(["run.created", "term.started", "term.started", "run.ended"]);
  });
});
