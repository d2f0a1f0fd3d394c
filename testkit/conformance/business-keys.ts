import { strict as assert } from "node:assert";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, record, tenant } from "./frame.ts";
import {
  armed,
  begin,
  compensated,
  confirmed,
  countOutcomes,
  decided,
  dispatched,
  find,
  Holder,
  holdItem,
  intent,
  settled,
  unchanged,
} from "./holder.ts";

const ownerOf = async (store: Store, scope: string, key: string): Promise<string | undefined> =>
  (await store.read.businessKeyOwner(tenant, scope, key))?.runId;

/** Business keys: at most one effect owns a key, from its intent until it did not happen or was compensated. */
export const businessKeys: Cases = ({ it }, fresh) => {
  it("a second effect is refused with the owner's run id, and nothing is written", async () => {
    const { store } = fresh();
    const owner = await begin(store);
    const rival = await begin(store);
    await owner.write(intent(0, { businessKey: "order-1" }));
    const claim = await store.read.businessKeyOwner(tenant, "wire", "order-1");
    assert.deepEqual(
      [claim?.runId, claim?.run, claim?.pos, claim?.scope, claim?.businessKey],
      [owner.id, owner.journal, 0, "wire", "order-1"],
    );
    await unchanged(store, async () => {
      const refusal = await rival.refused("TAPE_BUSINESS_KEY_TAKEN", intent(0, { businessKey: "order-1" }));
      assert.equal(refusal.details.run, owner.id);
      const self = await owner.refused("TAPE_BUSINESS_KEY_TAKEN", intent(1, { businessKey: "order-1" }));
      assert.equal(self.details.run, owner.id);
      await rival.refused("TAPE_BUSINESS_KEY_TAKEN", intent(0, { businessKey: "order-1", dispatch: "outbox" }));
    });
  });

  it("a key's scope is the connector, else the effect's name, within one tenant", async () => {
    const { store } = fresh();
    const a = await begin(store);
    const b = await begin(store);
    await a.write(intent(0, { businessKey: "k", connector: "bank" }), intent(1, { businessKey: "k" }));
    await b.write(intent(0, { businessKey: "k", name: "mail" }), intent(1, { businessKey: "K" }));
    await b.refused("TAPE_BUSINESS_KEY_TAKEN", intent(2, { businessKey: "k", name: "other", connector: "bank" }));
    assert.equal(await ownerOf(store, "bank", "k"), a.id);
    assert.equal(await ownerOf(store, "wire", "k"), a.id);
    assert.equal(await ownerOf(store, "mail", "k"), b.id);
    assert.equal(await store.read.businessKeyOwner("globex", "bank", "k"), undefined);
  });

  it("a key is freed by FAILED, WITHDRAWN and COMPENSATED, and by no other status", async () => {
    const { store } = fresh();
    const taken = async (key: string, pos: number) => {
      const rival = await begin(store);
      await unchanged(store, () => rival.refused("TAPE_BUSINESS_KEY_TAKEN", intent(pos, { businessKey: key })));
    };
    const free = async (key: string) => {
      assert.equal(await ownerOf(store, "wire", key), undefined);
      await (await begin(store)).write(intent(0, { businessKey: key }));
    };
    const failed = await begin(store);
    await failed.write(intent(0, { businessKey: "failed" }), dispatched(0), intent(1, { businessKey: "sister" }));
    await taken("failed", 0);
    await failed.write(settled(0, "FAILED"));
    await free("failed");
    await taken("sister", 0);

    const withdrawn = await begin(store);
    await withdrawn.write(intent(0, { businessKey: "withdrawn" }), decided("cancelled"));
    await free("withdrawn");

    const inDoubt = await begin(store);
    await inDoubt.write(intent(0, { businessKey: "uncertain" }), dispatched(0), settled(0, "UNKNOWN"));
    await taken("uncertain", 0);
    const item = await holdItem(store, inDoubt.id, 0);
    await item.write(settled(0, "STUCK", { run: inDoubt.journal }));
    await taken("uncertain", 0);
    await item.write(settled(0, "FAILED", { run: inDoubt.journal, reason: "operator" }));
    await free("uncertain");

    const run = await begin(store);
    await run.write(...confirmed(0, { businessKey: "undone" }), armed(0));
    await taken("undone", 0);
    await run.write(decided("failed"), record("run.compensating", {}));
    await taken("undone", 0);
    const [term] = await find(store, "compensation");
    const compensation = new Holder(store, term!, run.id);
    await compensation.write(dispatched(0, { run: run.journal, sub: 1 }));
    await taken("undone", 0);
    await compensation.write(compensated(run.journal, 0));
    await free("undone");
  });

  it("compensating a surplus leaves the key with the confirmed effect", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(
      ...confirmed(0, { businessKey: "twice" }),
      record("obligation.surplus", { pos: 0, sub: 2, name: "undo", semantics: "idempotent", key: "s", args: 1 }),
    );
    const item = await holdItem(store, run.id, 0, 2);
    await item.write(dispatched(0, { run: run.journal, sub: 2 }), compensated(run.journal, 0, "COMPENSATED", 2));
    assert.equal(await ownerOf(store, "wire", "twice"), run.id);
  });

  it("of many concurrent effects exactly one gets the key", async () => {
    const { store, another } = fresh();
    const clients = [store, await another()];
    const askers = await Promise.all(Array.from({ length: 12 }, (_, k) => begin(clients[k % 2]!)));
    const results = await Promise.all(
      askers.map((asker) =>
        asker.write(intent(0, { businessKey: "hot" })).then(
          () => asker.id,
          (error: { code?: string }) => error.code,
        ),
      ),
    );
    const owner = await ownerOf(store, "wire", "hot");
    assert.deepEqual(countOutcomes(results), { [String(owner)]: 1, TAPE_BUSINESS_KEY_TAKEN: 11 });
    const rows = await store.read.effects(tenant);
    assert.equal(rows.length, 1);
  });
};
