import { strict as assert } from "node:assert";
import { seededRandom } from "../../src/base/random.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, tenant } from "./frame.ts";
import { ended, type Holder } from "./holder.ts";
import { admit, assertProjected, audit, countsOf, enqueue, newQueue } from "./queue-fixtures.ts";

/** Runs inside at once, in all and per key, as the clients themselves count them. */
class Inside {
  readonly #byKey = new Map<string, number>();
  #all = 0;
  max = 0;
  maxOfKey = 0;

  enter(key: string): void {
    this.#all++;
    const n = (this.#byKey.get(key) ?? 0) + 1;
    this.#byKey.set(key, n);
    this.max = Math.max(this.max, this.#all);
    this.maxOfKey = Math.max(this.maxOfKey, n);
  }

  leave(key: string): void {
    this.#all--;
    this.#byKey.set(key, this.#byKey.get(key)! - 1);
  }
}

/** Many clients of one queue at once. */
export const queueClients: Cases = ({ it }, fresh) => {
  const keys = ["a", "b", "c", "d"];

  /** A client that starts, admits, parks, wakes and ends runs until all have ended. */
  async function client(
    store: Store,
    queue: string,
    seed: number,
    inside: Inside,
    left: { runs: number },
  ): Promise<void> {
    const random = seededRandom(seed);
    while (left.runs > 0) {
      const found = await admit(store, queue, 1 + random.int(4));
      const inParallel = found.map(async (run) => {
        const key = run.id.split("/")[1] ?? "";
        inside.enter(key);
        await store.read.now(); // the others get their turn
        inside.leave(key); // before the write that returns the slot
        await finish(store, run, random.int(4) === 0, left);
      });
      await Promise.all(inParallel);
      if (found.length === 0) await store.read.now();
    }
  }

  async function finish(store: Store, run: Holder, parks: boolean, left: { runs: number }): Promise<void> {
    if (parks && run.term.notes === 0) {
      await run.release();
      await store.intake.signal(tenant, run.id, { name: "s", value: 1 });
      return;
    }
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: run.term.notes }));
    left.runs--;
  }

  it("[INV-19] eight clients never exceed a limit, leave no slot held, and finish every run", async () => {
    const { store, another } = fresh();
    const queue = await newQueue(store, { concurrency: 5, perKey: { concurrency: 2 } });
    const stores = [store, await another(), await another(), await another()];
    const inside = new Inside();
    const perKey = 10;
    const left = { runs: keys.length * perKey };
    const producers = keys.map(async (key, k) => {
      for (let n = 0; n < perKey; n++) {
        const id = `${queue}-${n}/${key}`;
        await enqueue(stores[k % stores.length]!, queue, 1, { id, key, priority: 1 + (n % 3) });
      }
    });
    const clients = Array.from({ length: 8 }, (_, k) => client(stores[k % stores.length]!, queue, k + 1, inside, left));
    await Promise.all([...producers, ...clients]);
    assert.ok(inside.max <= 5 && inside.maxOfKey <= 2, `${inside.max} at once, ${inside.maxOfKey} of a key`);
    assert.deepEqual(await countsOf(store, queue), [0, 0]);
    await assertProjected(store);
  }, 30_000);

  it("a limit that changes under load holds from the change on", async () => {
    const { store, another } = fresh();
    const queue = await newQueue(store, { concurrency: 6 });
    const stores = [store, await another()];
    await enqueue(store, queue, 30);
    const left = { runs: 30 };
    const clients = Array.from({ length: 4 }, (_, k) => client(stores[k % 2]!, queue, k + 1, new Inside(), left));
    for (const concurrency of [1, 4, 2]) {
      await store.intake.changeQueue(tenant, queue, { concurrency }, audit);
      const [running] = await countsOf(store, queue);
      assert.ok(running <= 6, `${running} slots are held`);
    }
    await Promise.all(clients);
    assert.deepEqual(await countsOf(store, queue), [0, 0]);
    await assertProjected(store);
  }, 30_000);
};
