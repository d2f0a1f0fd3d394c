import { strict as assert } from "node:assert";
import { TapeError } from "../../src/model/errors.ts";
import { makeFence } from "../../src/model/fence.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, claimant, record, refused, request, scheduleSpec, step, tenant } from "./frame.ts";
import { begin, holdItem, intent, lasting, unchanged } from "./holder.ts";

/** Another tenant's things look like absent ones: by id, by name and by journal number. */
export const tenantIsolation: Cases = ({ it }, fresh) => {
  const scene = async (store: Store) => {
    const run = await begin(store, { budget: { usd: 5 }, labels: { canary: "canary" } });
    await run.write(
      intent(0, { dispatch: "outbox", businessKey: "canary" }),
      record("gate.opened", { pos: 1, name: "g", timeoutMs: 1 }),
      record("value.written", { key: "canary", version: 1, value: "canary" }),
    );
    const item = await holdItem(store, run.id, 0);
    const named = await store.claim.acquire(tenant, request({ name: "canary" }, { claimant: claimant("o", lasting) }));
    assert.ok(named.ok);
    await store.intake.putSchedule(tenant, { id: "canary", spec: scheduleSpec("canary"), nextAt: null, paused: false });
    await store.intake.signal(tenant, run.id, { name: "s", value: "canary" });
    return { run, item, named: named.term };
  };

  it("reads of another tenant's things return nothing", async () => {
    const { store } = fresh();
    const { run, item, named } = await scene(store);
    const { read } = store;
    const lists = await Promise.all([
      read.runs("globex"),
      read.runs("globex", { label: { key: "canary", value: "canary" } }),
      read.effects("globex"),
      read.effects("globex", { run: run.id }),
      read.gates("globex", { run: run.id }),
      read.timers("globex", { run: run.id }),
      read.schedules("globex"),
      read.budgets("globex", run.id),
      read.values("globex", ""),
      read.valueHistory("globex", "canary", 0),
      read.leases("globex"),
      read.journal("globex", { run: run.id }),
      read.journal("globex", { run: run.id }, { inbox: true }),
      ...[run.journal, item.journal, named.journal].map((journal) => read.journal("globex", { journal })),
      (await read.feed(undefined, 100, "globex")).records,
    ]);
    assert.deepEqual(lists.flat(), []);
    const ones = await Promise.all([
      read.run("globex", run.id),
      read.value("globex", "canary"),
      read.businessKeyOwner("globex", "wire", "canary"),
      read.lease("globex", { run: run.id }),
      read.lease("globex", { name: "canary" }),
      ...[run.journal, item.journal, named.journal].map((journal) => read.lease("globex", { journal })),
    ]);
    assert.ok(ones.every((one) => one === undefined));
  });

  it("[INV-12] writes are rejected exactly as for something that does not exist", async () => {
    const { store } = fresh();
    const { run, item, named } = await scene(store);
    const { intake, claim, read } = store;
    const pairs: Record<string, (id: string, journal: number) => Promise<unknown>> = {
      signal: (id) => intake.signal("globex", id, { name: "s", value: 1 }),
      cancel: (id) => intake.cancel("globex", id, { reason: "r" }),
      "acquire by id": (id) => claim.acquire("globex", request({ run: id })),
      "acquire by number": (_, journal) => claim.acquire("globex", request({ journal })),
      "take over by force": (_, journal) =>
        claim.acquire("globex", request({ journal }, { expect: "any", by: "eve", auditReason: "mine" })),
      terms: (id) => read.terms("globex", { run: id }),
      "terms by number": (_, journal) => read.terms("globex", { journal }),
    };
    const shape = async (work: Promise<unknown>, id: string, journal: number) => {
      const error = await work.then(
        () => assert.fail("it was accepted"),
        (reason: unknown) => reason,
      );
      assert.ok(error instanceof TapeError);
      return `${error.code} ${error.message}`.replaceAll(id, "ID").replaceAll(String(journal), "NUMBER");
    };
    await unchanged(
      store,
      async () => {
        for (const [what, call] of Object.entries(pairs)) {
          for (const journal of [run.journal, item.journal, named.journal]) {
            const ours = await shape(call(run.id, journal), run.id, journal);
            const absent = await shape(call("nobody-at-all", 987_654_321), "nobody-at-all", 987_654_321);
            assert.equal(ours, absent, what);
          }
        }
        assert.deepEqual(
          await claim.find({
            ...request({ name: "x" }),
            nextReactor: "outbox",
            staleOf: [],
            limit: 9,
            tenant: "globex",
          }),
          [],
        );
        assert.equal(await intake.deleteSchedule("globex", "canary"), false);
        await refused("TAPE_VERSION_CONFLICT", intake.deleteValue("globex", "canary", 1));
      },
      tenant,
      "globex",
    );
  });

  it("a fence is valid for its own journal only", async () => {
    const { store } = fresh();
    const { run, item } = await scene(store);
    const other = await begin(store);
    const { token, nonce: own } = other.term.fence;
    await unchanged(store, async () => {
      for (const { journal, head } of [run, item]) {
        const crossed = makeFence(tenant, journal, token, own);
        await refused("TAPE_FENCED", store.fenced.append(crossed, { after: head, records: [step(0)] }));
      }
      const nowhere = makeFence(tenant, 987_654_321, token, own);
      await refused("TAPE_FENCED", store.fenced.append(nowhere, { after: 1, records: [step(0)] }));
    });
  });
};
