import { strict as assert } from "node:assert";
import type { ProcessView, Store } from "../../src/store/contract/store.ts";
import { type Cases, refused, tenant, unique } from "./frame.ts";
import { begin, unchanged } from "./holder.ts";

const seen = (processes: readonly ProcessView[]) => processes.map(({ owner, label, body }) => ({ owner, label, body }));
const listed = async (store: Store, of = tenant) => seen(await store.read.processes(of));

/** Process reports for operators. No other data depends on them. */
export const processReports: Cases = ({ it }, fresh) => {
  it("a process is listed with its last report until it is removed", async () => {
    const { store, another } = fresh();
    const [one, two] = [unique("owner"), unique("owner")];
    const body = { singletons: [{ name: "sweeper", state: "holder", token: 5n }], at: new Date(5), none: undefined };
    await store.intake.reportProcess(tenant, { owner: two, label: "replica-b", body: 1 });
    await store.intake.reportProcess(tenant, { owner: one, label: "replica-a", body: { first: true } });
    await store.intake.reportProcess(tenant, { owner: one, label: "replica-a", body });
    const all = [
      { owner: one, label: "replica-a", body },
      { owner: two, label: "replica-b", body: 1 },
    ];
    assert.deepEqual(await listed(store), all);
    assert.deepEqual(await listed(await another()), all);
    const now = await store.read.now();
    for (const { at, agoMs } of await store.read.processes(tenant)) {
      assert.ok(at <= now && now - at < 60_000 && agoMs >= 0 && agoMs < 60_000, `${at} ${agoMs} ${now}`);
    }
    await (await another()).intake.removeProcess(tenant, one);
    await store.intake.removeProcess(tenant, one);
    assert.deepEqual(await listed(store), [all[1]]);
  });

  it("two processes of one label are listed apart, for their own tenant only", async () => {
    const { store } = fresh();
    const owners = [unique("owner"), unique("owner")].sort();
    for (const owner of owners) await store.intake.reportProcess(tenant, { owner, label: "replica", body: owner });
    assert.deepEqual(
      (await listed(store)).map(({ owner }) => owner),
      owners,
    );
    assert.deepEqual(await listed(store, "globex"), []);
    await store.intake.reportProcess("globex", { owner: owners[0]!, label: "theirs", body: "theirs" });
    await store.intake.removeProcess("globex", owners[1]!);
    assert.deepEqual(
      (await listed(store)).map(({ label, body }) => [label, body]),
      owners.map((owner) => ["replica", owner]),
    );
    assert.deepEqual(await listed(store, "globex"), [{ owner: owners[0], label: "theirs", body: "theirs" }]);
  });

  it("a report writes no record and changes no lease, run or effect", async () => {
    const { store } = fresh();
    await begin(store);
    const audit = await store.read.audit(undefined);
    await unchanged(store, async () => {
      await store.intake.reportProcess(tenant, { owner: "o", label: "l", body: { reactors: {} } });
      await store.intake.removeProcess(tenant, "o");
      await store.intake.removeProcess(tenant, "nobody");
    });
    assert.deepEqual(await store.read.audit(undefined), audit);
  });

  it("an invalid report is refused, and the last one stays", async () => {
    const { store } = fresh();
    const report = (body: unknown) => store.intake.reportProcess(tenant, { owner: "o", label: "l", body });
    await report("x".repeat(30_000));
    await refused("TAPE_TOO_LARGE", report("x".repeat(33_000)));
    await refused("TAPE_TOO_LARGE", report("€".repeat(12_000)));
    await refused(
      "TAPE_NOT_ENCODABLE",
      report(() => 1),
    );
    await refused("TAPE_BAD_INPUT", store.intake.reportProcess(tenant, undefined as never));
    const [kept, ...others] = await listed(store);
    assert.ok(kept?.body === "x".repeat(30_000) && others.length === 0);
  });
};
