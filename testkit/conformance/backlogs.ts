import { strict as assert } from "node:assert";
import type { Term } from "../../src/model/lease.ts";
import type { RecordData } from "../../src/model/records.ts";
import type { FindRequest, Share } from "../../src/store/contract/store.ts";
import { type Cases, claimant, heldRun, record, refused, tenant } from "./frame.ts";
import { brief, findRequest, heldRuns, lasting, pastBrief, release, waitingRuns } from "./lease-fixtures.ts";

const wire: RecordData<"effect.intended"> = {
  pos: 0,
  name: "wire",
  semantics: "idempotent",
  dispatch: "outbox",
  key: "k",
  argsHash: "h",
  args: 1,
};
const outboxed = record("effect.intended", wire);

/** Backlogs by tenant and workflow are independent of each other. */
export const backlogs: Cases = ({ it }, fresh) => {
  it("the agenda for some workflows contains only these and items", async () => {
    const { store, elapse } = fresh();
    const dueFor = async (...workflows: string[]) =>
      (await store.read.agenda(tenant, workflows)).map(({ reactor }) => reactor ?? "anybody").sort();
    await waitingRuns(store, 2);
    const [held] = await heldRuns(store, 1, claimant(undefined, brief));
    assert.deepEqual(await dueFor("w"), ["anybody", "recovery"]);
    assert.deepEqual(await dueFor("other"), []);
    assert.deepEqual(await dueFor(), []);
    await store.fenced.append(held!.fence, { after: 1, records: [outboxed] });
    assert.deepEqual(await dueFor("other"), ["outbox"], "a reactor for effects serves every workflow");
    await elapse(pastBrief);
    assert.deepEqual(await dueFor("other"), ["outbox"]);
    assert.deepEqual(await dueFor("other", "w"), ["anybody", "outbox", "recovery"]);
  });

  it("the agenda of a tenant covers all its workflows, and the earliest of each counts", async () => {
    const { store, elapse } = fresh();
    const when = async (of = tenant) =>
      new Map((await store.read.agenda(of)).map(({ reactor, dueInMs }) => [reactor ?? "anybody", dueInMs]));
    for (const [workflow, delayMs] of [
      ["a", 50_000],
      ["c", 20_000],
      ["c", 40_000],
      ["b", 30_000],
    ] as const) {
      const run = await heldRun(store, { workflow }, claimant(undefined, lasting));
      await release(store, run, { nextReactor: "recovery", delayMs });
    }
    const recovery = (await when()).get("recovery")!;
    assert.ok(recovery > 10_000 && recovery <= 20_000, `the next run of all workflows is due in ${recovery} ms`);
    assert.deepEqual([...(await when("globex")).keys()], []);
    await heldRun(store, { workflow: "a" }, claimant(undefined, lasting));
    await heldRun(store, { workflow: "z" }, claimant(undefined, brief));
    await elapse(pastBrief);
    assert.equal((await when()).get("anybody"), 0, "the first lease to expire, whichever workflow it has");
  });

  it("a find for items takes no run, queued or expired", async () => {
    const { store, elapse } = fresh();
    await waitingRuns(store, 1);
    const run = await heldRun(store, {}, claimant(undefined, brief));
    await store.fenced.append(run.fence, { after: 1, records: [outboxed] });
    await elapse(pastBrief);
    const items = { kind: "item", staleOf: ["outbox", "agent", "recovery"] } as const;
    assert.deepEqual(await store.claim.find(findRequest({ ...items, nextReactor: "recovery", tenant })), []);
    const found = await store.claim.find(findRequest({ ...items, nextReactor: "outbox", tenant }));
    assert.deepEqual(
      found.map(({ kind }) => kind),
      ["item"],
    );
    await refused("TAPE_BAD_INPUT", store.claim.find(findRequest({ ...items, workflows: ["w"] })));
    await refused("TAPE_BAD_INPUT", store.claim.find(findRequest({ kind: "name" as "item" })));
  });

  it("a find with a share takes no more per callee than allowed, and skips ahead", async () => {
    const { store, another, elapse } = fresh();
    const owed = async (count: number, more: { name: string; connector?: string }): Promise<void> => {
      for (let k = 0; k < count; k++) {
        const run = await heldRun(store);
        await store.fenced.append(run.fence, {
          after: run.head,
          records: [record("effect.intended", { ...wire, key: `${run.journal}`, ...more })],
        });
      }
    };
    await owed(7, { name: "charge", connector: "slow" });
    await elapse(5);
    await owed(4, { name: "refund", connector: "slow" });
    await owed(3, { name: "wire" });
    await owed(2, { name: "mail", connector: "quick" });
    const ask = (share: Share, more: Partial<FindRequest> = {}) =>
      findRequest({ nextReactor: "outbox", staleOf: [], kind: "item", share, ...more });
    const calleesOf = (terms: readonly Term[]): string[] => terms.map(({ callee }) => String(callee)).sort();
    const first = ask({ max: 2, busy: [{ callee: "wire", items: 1 }] }, { limit: 5 });
    const expected = ["quick", "quick", "slow", "slow", "wire"];
    assert.deepEqual(calleesOf(await store.claim.find(first)), expected);
    assert.deepEqual(calleesOf(await store.claim.find(first)), expected, "its response may have been lost");
    const busy = [
      { callee: "slow", items: 2 },
      { callee: "wire", items: 2 },
    ];
    assert.deepEqual(await store.claim.find(ask({ max: 2, busy })), []);
    // What was left is free immediately for claimants with capacity.
    const rival = await another();
    const others = await rival.claim.find(ask({ max: 3, busy: [] }, { claimant: claimant(undefined, brief) }));
    assert.deepEqual(calleesOf(others), ["slow", "slow", "slow", "wire", "wire"]);
    // The same holds for abandoned items.
    await elapse(pastBrief);
    const stale = { nextReactor: "reconciler", staleOf: ["agent"] };
    const abandoned = await store.claim.find(ask({ max: 1, busy: [] }, stale));
    assert.deepEqual(calleesOf(abandoned), ["slow", "wire"]);
    await refused("TAPE_BAD_INPUT", store.claim.find(ask({ max: 0, busy: [] })));
    await refused("TAPE_BAD_INPUT", store.claim.find(findRequest({ share: { max: 1, busy: [] } })));
  });
};
