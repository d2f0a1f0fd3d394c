import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { LeaseKeeper } from "../../src/lease/keeper.ts";
import { cancelRun } from "../../src/operator/cancel.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
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

  both("is ended by a cancel although it is pinned to a build whose processes are gone", async (open) => {
    const { store, time, tape } = await open(createRunner({ workflows: [workflow("here", async () => 1)] }));
    const { tenant } = tape;
    await time.during(store.intake.reportBuild(tenant, "gone", ["nowhere"]));
    await time.during(store.intake.createRuns(tenant, [{ id: "lost", workflow: "nowhere", input: 1 }]));
    // A process of that build found it, and ended before it had executed anything.
    const claimant = { owner: "dead", label: "dead", reactor: "recovery", ttlMs: 5_000 };
    const build = { build: "gone", pinned: ["nowhere"] };
    const request = { claimant, nextReactor: "recovery", staleOf: [], limit: 1, nonce: 7n, tenant, build };
    const [term] = await time.during(store.claim.find({ ...request, workflows: ["nowhere"] }));
    const data = { reason: "drained", notesTaken: 0, nextReactor: "recovery" } as const;
    await time.during(store.fenced.append(term!.fence, { after: term!.head, records: [{ kind: "term.ended", data }] }));
    expect((await time.during(store.read.run(tenant, "lost")))?.lease.nextReactor).toBe("recovery@gone");
    await time.during(tape.cancel("lost", { reason: "its build is gone" }));
    expect((await time.during(tape.runs.get("lost")))?.status).toBe("CANCELLED");
    const journal = await time.during(store.read.journal(tenant, { run: "lost" }));
    expect(journal.findLast(({ kind }) => kind === "term.started")?.data).toMatchObject({ reason: "cancellation" });
    expect(await time.during(store.read.isDrained(tenant, "gone"))).toBe(true);
  });

  it("is cancelled although the machine's clock jumps past the lease meanwhile", async () => {
    const store = await openStore("memory:");
    let jumpMs = 0;
    const clock: Clock = { ...systemClock, wall: () => systemClock.wall() + jumpMs };
    const keeper = new LeaseKeeper({ store, identity: { owner: "a", label: "a" }, clock });
    const acquire: Store["claim"]["acquire"] = async (...args) => {
      const result = await store.claim.acquire(...args);
      jumpMs = 3_600_000;
      return result;
    };
    const jumping: Store = { ...store, claim: { ...store.claim, acquire } };
    await store.intake.createRuns("default", [{ id: "lost", workflow: "nowhere", input: 1 }]);
    const deps = { store: jumping, keeper, tenant: "default", clock, random: systemRandom };
    await cancelRun(deps, "lost", { reason: "no process has it" });
    expect((await store.read.run("default", "lost"))?.status).toBe("CANCELLED");
    keeper.close();
    await store.close();
  });
});
