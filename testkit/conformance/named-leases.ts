import { strict as assert } from "node:assert";
import type { LeaseFilter } from "../../src/store/contract/store.ts";
import { acquired, type Cases, heldRun, refused, request, tenant, unique } from "./frame.ts";

/** Lists of named leases: none is missing behind the leases of runs. */
export const namedLeases: Cases = ({ it }, fresh) => {
  it("named leases are listed by name, whatever else is held", async () => {
    const { store } = fresh();
    const prefix = `${unique("singleton")}, 100% `;
    const names = ["a", "b", "c", "d", "e"].map((letter) => prefix + letter);
    for (const name of names) await acquired(store, request({ name }));
    const free = await acquired(store, request({ name: `${prefix}free` }));
    await acquired(store, request({ name: `${prefix}theirs` }), "globex");
    const ended = { kind: "term.ended", data: { reason: "released", notesTaken: 0 } } as const;
    await store.fenced.append(free.fence, { after: free.head, records: [ended] });
    for (let k = 0; k < 4; k++) await heldRun(store);
    const newest = await store.read.leases(tenant, { held: true, limit: 4 });
    assert.deepEqual(newest.map(({ kind }) => kind), ["run", "run", "run", "run"]); // biome-ignore format: a line
    const list = async (filter: Omit<LeaseFilter, "kind">): Promise<(string | null)[]> => {
      const page = await store.read.leases(tenant, { kind: "name", ...filter });
      assert.ok(page.every(({ kind, tenant: of }) => kind === "name" && of === tenant));
      return page.map(({ name }) => name);
    };
    assert.deepEqual(await list({ prefix, held: true }), names);
    assert.deepEqual(await list({ prefix }), [...names, `${prefix}free`]);
    assert.deepEqual(await list({ names: [names[3]!, names[1]!, "no such lease", `${prefix}theirs`] }), [names[1], names[3]]); // biome-ignore format: a line
    assert.deepEqual(await list({ names: [] }), []);
    assert.deepEqual(await list({ names: [`${prefix}free`], held: true }), []);
    assert.deepEqual(await list({ prefix: `${prefix}x` }), []);
    const first = await store.read.leases(tenant, { kind: "name", prefix, limit: 2 });
    assert.deepEqual([first.map(({ name }) => name), first.more], [names.slice(0, 2), true]);
    assert.deepEqual(await list({ prefix, held: true, above: names[1]! }), names.slice(2));
    const [one] = first;
    assert.deepEqual([one?.state, one?.token], ["HELD", 1n]);
  });

  it("[INV-5] a list by name without its kind, or with too many names, is refused", async () => {
    const { store } = fresh();
    const names = Array.from({ length: 101 }, (_, k) => `n-${k}`);
    await refused("TAPE_TOO_LARGE", store.read.leases(tenant, { kind: "name", names }));
    assert.deepEqual(await store.read.leases(tenant, { kind: "name", names: names.slice(1) }), []);
    const bad: unknown[] = [{ kind: "run" }, { names: ["a"] }, { prefix: "a" }, { above: "a" }];
    bad.push({ kind: "name", names: [1] }, { kind: "name", prefix: 1 }, { kind: "name", above: {} });
    for (const filter of bad) await refused("TAPE_BAD_INPUT", store.read.leases(tenant, filter as LeaseFilter));
  });
};
