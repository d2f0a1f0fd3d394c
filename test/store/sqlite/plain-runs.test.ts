import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NewRecord } from "../../../src/model/records.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { claimant, nonce, record, spec, step, tenant } from "../../../testkit/conformance/frame.ts";
import { armed, confirmed, ended, intent } from "../../../testkit/conformance/holder.ts";
import { codeOf } from "../postgres/scene.ts";

/**
 * A run that was created through this connection and has had only plain records since may end without checking what it
 * has open: it has nothing. One record that opens something must end that knowledge.
 */
describe("the end of a run that the connection knows from the start", () => {
  let store: Store;
  beforeEach(async () => {
    store = await openSqlite({ file: ":memory:" });
  });
  afterEach(() => store.close());

  const create = async (run = spec(), first = { ...claimant(undefined, { ttlMs: 60_000 }), nonce: nonce() }) => {
    const [created] = await store.intake.createRuns(tenant, [run], first);
    if (created?.ok !== true || created.term === undefined) throw new Error("not created");
    return { run, first, fence: created.term.fence };
  };
  const openings: Readonly<Record<string, readonly NewRecord[]>> = {
    "an effect": [intent(0)],
    "a gate": [record("gate.opened", { pos: 0, name: "g" })],
    "a timer": [record("timer.set", { pos: 0, purpose: "sleep", delayMs: 60_000 })],
    "a child": [record("child.started", { pos: 0, id: "child", workflow: "w", input: 1, inputHash: "h" })],
  };

  it.each(Object.entries(openings))("is refused while %s is open", async (_what, records) => {
    for (const plain of [[], [step(9)]]) {
      const { fence } = await create();
      if (plain.length > 0) await store.fenced.append(fence, { after: 1, records: plain });
      const { head } = await store.fenced.append(fence, {
        after: 1 + plain.length,
        records: withOwnChild(records, fence),
      });
      const end = { after: head, records: [ended("COMPLETED", { outcome: 1 })] };
      expect(await codeOf(store.fenced.append(fence, end))).toBe("TAPE_RUN_UNSETTLED");
      const later = await store.fenced.append(fence, { after: head, records: [step(10)] });
      const retry = { after: later.head, records: [ended("COMPLETED", { outcome: 1 })] };
      expect(await codeOf(store.fenced.append(fence, retry))).toBe("TAPE_RUN_UNSETTLED");
    }
  });

  it("discharges armed obligations", async () => {
    const { run, fence } = await create();
    const { head } = await store.fenced.append(fence, { after: 1, records: [...confirmed(0), armed(0)] });
    await store.fenced.append(fence, { after: head, records: [ended("COMPLETED", { outcome: 1 })] });
    const obligations = await store.read.effects(tenant, { run: run.id, role: "compensation" });
    expect(obligations.map(({ status }) => status)).toEqual(["DISCHARGED"]);
  });

  it("a repeated creation does not mark a run that has continued since as plain", async () => {
    const { run, first, fence } = await create();
    const { head } = await store.fenced.append(fence, { after: 1, records: [intent(0)] });
    expect((await create(run, first)).fence).toEqual(fence);
    const end = { after: head, records: [ended("COMPLETED", { outcome: 1 })] };
    expect(await codeOf(store.fenced.append(fence, end))).toBe("TAPE_RUN_UNSETTLED");
  });

  it("needs no check while nothing was opened", async () => {
    const { run, fence } = await create();
    await store.fenced.append(fence, { after: 1, records: [step(0)] });
    await store.fenced.append(fence, { after: 2, records: [ended("COMPLETED", { outcome: 1 })] });
    expect((await store.read.run(tenant, run.id))?.status).toBe("COMPLETED");
  });
});

/** Ids of children are unique in the store, and each case starts two runs. */
function withOwnChild(records: readonly NewRecord[], fence: { readonly journal: number }): NewRecord[] {
  return records.map((entry) =>
    entry.kind === "child.started"
      ? record("child.started", { ...entry.data, id: `child of ${fence.journal}` })
      : entry,
  );
}
