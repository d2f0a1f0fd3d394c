import { strict as assert } from "node:assert";
import { type Cases, claimant, heldRun, record, refused, tenant } from "./frame.ts";
import { brief, heldRuns, hunt, pastBrief, waitingRuns } from "./holding.ts";

const outboxed = record("effect.intended", {
  pos: 0,
  name: "wire",
  semantics: "idempotent",
  dispatch: "outbox",
  key: "k",
  argsHash: "h",
  args: 1,
});

/** Queues by tenant and workflow: what lies in one is nothing to whoever looks into another. */
export const queues: Cases = ({ it }, fresh) => {
  it("the agenda of those who serve some workflows tells of these alone, and of items", async () => {
    const { store, elapse } = fresh();
    const dueFor = async (...workflows: string[]) =>
      (await store.read.agenda(tenant, workflows)).map(({ reactor }) => reactor ?? "anybody").sort();
    await waitingRuns(store, 2);
    const [held] = await heldRuns(store, 1, claimant(undefined, brief));
    assert.deepEqual(await dueFor("w"), ["anybody", "recovery"]);
    assert.deepEqual(await dueFor("other"), []);
    assert.deepEqual(await dueFor(), []);
    await store.fenced.append(held!.fence, { after: 1, records: [outboxed] });
    assert.deepEqual(await dueFor("other"), ["outbox"], "whoever works on effects serves every workflow's");
    await elapse(pastBrief);
    assert.deepEqual(await dueFor("other"), ["outbox"]);
    assert.deepEqual(await dueFor("other", "w"), ["anybody", "outbox", "recovery"]);
  });

  it("a find for items takes no run, neither one that waits nor one whose holder is gone", async () => {
    const { store, elapse } = fresh();
    await waitingRuns(store, 1);
    const run = await heldRun(store, {}, claimant(undefined, brief));
    await store.fenced.append(run.fence, { after: 1, records: [outboxed] });
    await elapse(pastBrief);
    const items = { kind: "item", staleOf: ["outbox", "agent", "recovery"] } as const;
    assert.deepEqual(await store.claim.find(hunt({ ...items, wants: "recovery", tenant })), []);
    const found = await store.claim.find(hunt({ ...items, wants: "outbox", tenant }));
    assert.deepEqual(
      found.map(({ kind }) => kind),
      ["item"],
    );
    await refused("TAPE_BAD_INPUT", store.claim.find(hunt({ ...items, workflows: ["w"] })));
    await refused("TAPE_BAD_INPUT", store.claim.find(hunt({ kind: "name" as "item" })));
  });
};
