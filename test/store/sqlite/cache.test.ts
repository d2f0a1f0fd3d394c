import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { seededRandom } from "../../../src/base/random.ts";
import type { Term } from "../../../src/model/lease.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { acquired, claimant, heldRun, record, request, step, tenant } from "../../../testkit/conformance/frame.ts";
import { codeOf } from "../postgres/scene.ts";
import { type Place, placeForFile } from "./files.ts";

/**
 * Each connection remembers fence and head of what it wrote last, and may use them only while no other connection has
 * committed. Two connections that steal from each other show whether it forgets in time. (Verified manually: with the
 * call of `forget` in the committer's #begin left out, both tests fail.)
 */
describe("two connections on one file", () => {
  let place: Place;
  let stores: [Store, Store];
  beforeEach(async () => {
    place = placeForFile();
    stores = [await place.open({ durability: "relaxed" }), await place.open({ durability: "relaxed" })];
  });
  afterEach(() => place.close());
  const byForce = (owner: string) =>
    ({ claimant: claimant(owner, { ttlMs: 60_000 }), expect: "any", by: "ann", auditReason: "drill" }) as const;

  it("a cached lease is void once the other connection has taken, released or notified it", async () => {
    const [one, two] = stores;
    const run = await heldRun(one, {}, claimant("one", { ttlMs: 60_000 }));
    expect(await one.fenced.append(run.fence, { after: 1, records: [step(0)] })).toEqual({ head: 2, notes: 0 });
    await two.intake.signal(tenant, run.id, { name: "s", value: 1 });
    expect(await one.fenced.append(run.fence, { after: 2, records: [step(1)] })).toEqual({ head: 3, notes: 1 });
    // The same term, used through another connection: the head is not the remembered one.
    await two.fenced.append(run.fence, { after: 3, records: [step(2)] });
    expect(await codeOf(one.fenced.append(run.fence, { after: 3, records: [step(9)] }))).toBe("TAPE_NOT_HEAD");
    expect((await one.fenced.append(run.fence, { after: 4, records: [step(3)] })).head).toBe(5);
    const successor = await acquired(two, request({ run: run.id }, byForce("two")));
    expect(await codeOf(one.fenced.append(run.fence, { after: 5, records: [step(9)] }))).toBe("TAPE_FENCED");
    const released = record("term.ended", { reason: "released", notesTaken: 1 });
    await one.fenced.append(successor.fence, { after: successor.head, records: [released] });
    expect(await codeOf(two.fenced.append(successor.fence, { after: successor.head + 1, records: [step(9)] }))).toBe(
      "TAPE_FENCED",
    );
  });

  it("stealing from each other and writing on, they leave dense journals and rising tokens", async () => {
    const random = seededRandom("steal");
    const runs = await Promise.all(
      Array.from({ length: 3 }, () => heldRun(stores[0], {}, claimant("o", { ttlMs: 60_000 }))),
    );
    const holders = runs.map((run) => ({ run, believed: [run as Term, run as Term], heads: [1, 1] }));
    const verdicts = { done: 0, TAPE_FENCED: 0, TAPE_NOT_HEAD: 0 } as Record<string, number>;
    const acknowledged = new Map<number, number>(runs.map(({ journal }) => [journal, 0]));
    for (let op = 0; op < 600; op++) {
      const { run, believed, heads } = holders[random.int(3)]!;
      const side = random.int(2);
      const store = stores[side]!;
      if (random.int(6) === 0) {
        const term = await acquired(store, request({ run: run.id }, byForce(`owner-${side}`)));
        believed[side] = term;
        heads[side] = term.head;
        continue;
      }
      // Neither checks first whether it still holds the lease: that is the fence's task.
      const entry = { after: heads[side]!, records: [step(op)] };
      const code = await codeOf(store.fenced.append(believed[side]!.fence, entry));
      verdicts[code] = (verdicts[code] ?? 0) + 1;
      if (code !== "done") continue;
      heads[side] = heads[side]! + 1;
      acknowledged.set(run.journal, acknowledged.get(run.journal)! + 1);
    }
    expect(Object.keys(verdicts).sort()).toEqual(["TAPE_FENCED", "TAPE_NOT_HEAD", "done"]);
    expect(verdicts.done).toBeGreaterThan(100);
    expect(verdicts.TAPE_FENCED).toBeGreaterThan(50);
    for (const { run } of holders) {
      const journal = await stores[0].read.journal(tenant, { run: run.id });
      expect(journal.map(({ seq }) => seq)).toEqual(journal.map((_, k) => k + 1));
      expect(journal.filter(({ kind }) => kind === "step.done")).toHaveLength(acknowledged.get(run.journal)!);
      for (let k = 1; k < journal.length; k++) {
        const [before, after] = [journal[k - 1]!, journal[k]!];
        if (after.kind === "term.started") expect(after.token > before.token).toBe(true);
        else expect(after.token === before.token || before.kind === "run.created").toBe(true);
      }
    }
  });
});
