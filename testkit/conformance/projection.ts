import { strict as assert } from "node:assert";
import { seededRandom } from "../../src/base/random.ts";
import { isStoreJournal } from "../../src/model/journal-numbers.ts";
import type { ReadOps, Store } from "../../src/store/contract/store.ts";
import { checkProjection } from "../projection.ts";
import { type Cases, type StoreFixture, spec, tenant } from "./frame.ts";
import { armed, begin, confirmed, ended, intent, startChild } from "./holder.ts";
import { Workload } from "./workload.ts";

/** The checker's verdict once the feed has caught up: open transactions may hold it back for a while. */
async function verdict({ store, elapse }: StoreFixture, ...tenants: readonly string[]): Promise<string[]> {
  let faults = await checkProjection(store, tenants);
  for (let tries = 0; tries < 50 && faults.length > 0 && store.backend === "postgres"; tries++) {
    await elapse(20);
    faults = await checkProjection(store, tenants);
  }
  return faults;
}

/** The same store, with one read that returns wrong data. */
function lying(store: Store, lies: Partial<ReadOps>): Store {
  return { ...store, read: { ...store.read, ...lies } };
}

/** The tables are the fold of the records, whatever happened. */
export const projection: Cases = ({ it }, fresh) => {
  it("[INV-9] after a long random workload the records explain every row", async () => {
    const fixture = fresh();
    const { store, elapse } = fixture;
    const life = new Workload(fixture, seededRandom("projection"));
    await life.run(350);
    await store.intake.createRuns("globex", [spec()]);
    assert.deepEqual(await verdict(fixture, tenant, "globex"), []);
    await store.claim.restored("a drill");
    await elapse(20);
    await store.intake.prune(tenant, await store.read.now(), 3);
    await life.run(100);
    // The workload must have performed every action and been refused often, otherwise it proves nothing.
    for (let more = 0; more < 20 && life.never().length > 0; more++) await life.run(20);
    assert.deepEqual(life.never(), []);
    const refusals = Object.values(life.refusals).reduce((sum, times) => sum + times, 0);
    assert.ok(refusals > 40 && Object.keys(life.refusals).length > 3, JSON.stringify(life.refusals));
    assert.deepEqual(await verdict(fixture, tenant, "globex"), []);
  });

  it("the checker finds every kind of row that differs from its records", async () => {
    const fixture = fresh();
    const { store } = fixture;
    const { read } = store;
    const run = await begin(store, { budget: { usd: 5 } });
    const gate = { kind: "gate.opened", data: { pos: 3, name: "g", timeoutMs: 60_000 } } as const;
    await run.write(...confirmed(0, { businessKey: "order" }), armed(0), intent(1, { dispatch: "outbox" }), gate);
    const child = await startChild(run, 2, `${run.id}/2`);
    await child.write(ended("COMPLETED", { outcome: 1, parent: { journal: run.journal, pos: 2, id: child.id } }));
    assert.deepEqual(await verdict(fixture, tenant), []);
    const first = <T>(rows: T[], more: Partial<T>): T[] => rows.map((row, k) => (k === 0 ? { ...row, ...more } : row));
    const lies: Record<string, Partial<ReadOps>> = {
      "a run's status": { runs: async (...args) => first(await read.runs(...args), { status: "STUCK" }) },
      "a run's notes": { runs: async (...args) => first(await read.runs(...args), { notes: 7 }) },
      "a missing run": {
        runs: async (...args) => (await read.runs(...args)).filter(({ id }) => id !== child.id),
      },
      "an effect's status": { effects: async (...args) => first(await read.effects(...args), { status: "UNKNOWN" }) },
      "an effect's authority": { effects: async (...args) => first(await read.effects(...args), { authority: 1 }) },
      "a missing effect": { effects: async (...args) => (await read.effects(...args)).slice(1) },
      "a gate": { gates: async (...args) => first(await read.gates(...args), { status: "RECEIVED" }) },
      "a timer": { timers: async (...args) => first(await read.timers(...args), { status: "FIRED" }) },
      "a budget": { budgets: async (...args) => first(await read.budgets(...args), { spent: 1 }) },
      "a dropped claim": { businessKeyOwner: async () => undefined },
      "a lease": {
        lease: async (...args) => {
          const view = await read.lease(...args);
          return view && { ...view, token: view.token + 1n };
        },
      },
    };
    for (const [what, lie] of Object.entries(lies)) {
      const faults = await checkProjection(lying(store, lie), [tenant]);
      assert.ok(faults.length > 0, `it did not see ${what}`);
    }
    const whole = await read.feed(undefined);
    for (const [k, record] of whole.records.entries()) {
      if (isStoreJournal(record.journal)) continue;
      const without: Partial<ReadOps> = {
        feed: async (cursor, limit, of) => {
          const page = await read.feed(cursor, limit, of);
          return { ...page, records: page.records.filter((one) => one.cursor !== record.cursor) };
        },
      };
      const faults = await checkProjection(lying(store, without), [tenant]);
      assert.ok(faults.length > 0, `it did not miss record ${k}, a ${record.kind}`);
    }
  });
};
