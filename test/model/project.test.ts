import { describe, expect, it } from "vitest";
import { type Change, contended, isRequired, refusals } from "../../src/model/changes.ts";
import { itemKinds, nameKinds, noteKinds, storeKinds } from "../../src/model/kinds.ts";
import { changesOf, changesOfCreation, type RecordContext } from "../../src/model/projection.ts";
import { type NewRecord, type RecordData, type RecordKind, recordKinds } from "../../src/model/records.ts";
import type { JournalKind } from "../../src/model/rows.ts";
import { samples } from "../../testkit/conformance/misplaced.ts";

const at = (kind: JournalKind, more: Partial<RecordContext> = {}): RecordContext => {
  let next = 100;
  const fixed = { token: 5n, nonce: 6n, queued: false, keepVersions: 10, maxNames: 32, maxUnits: 64, maxLabels: 16 };
  return { journal: 9, kind, ...fixed, allocate: () => ++next, ...more };
};
const record = <K extends RecordKind>(kind: K, more: Partial<RecordData<K>> = {}): NewRecord =>
  ({ kind, data: { ...samples[kind], ...more } }) as unknown as NewRecord;
const kindsOf = (changes: readonly Change[]) => changes.map((change) => change.do);
function only<K extends Change["do"]>(changes: readonly Change[], kind: K): Extract<Change, { do: K }> {
  const found = changes.filter((change) => change.do === kind);
  expect(found).toHaveLength(1);
  return found[0] as Extract<Change, { do: K }>;
}

describe("the journal of a record", () => {
  const belongs: Record<JournalKind, (kind: RecordKind) => boolean> = {
    run: (kind) => !noteKinds.has(kind) && !storeKinds.has(kind),
    item: (kind) => itemKinds.has(kind),
    name: (kind) => nameKinds.has(kind),
    store: () => false,
  };
  for (const [journal, fits] of Object.entries(belongs) as [JournalKind, (kind: RecordKind) => boolean][]) {
    it.each(recordKinds)(`${journal}: %s`, (kind) => {
      const place = () => changesOf(record(kind), at(journal));
      if (fits(kind)) expect(place).not.toThrow();
      else
        expect(place).toThrow(expect.objectContaining({ code: "TAPE_RECORD_MISPLACED", details: { kind, journal } }));
    });
  }
});

describe("the changes of a record", () => {
  it("every change has an entry in refusals", () => {
    const changes = recordKinds.flatMap((kind) =>
      (["run", "item", "name"] as const).flatMap((journal) => {
        try {
          return changesOf(record(kind), at(journal));
        } catch {
          return [];
        }
      }),
    );
    expect(new Set(kindsOf(changes)).size).toBeGreaterThan(20);
    for (const change of changes) {
      expect(Object.hasOwn(refusals, change.do), change.do).toBe(true);
      if (isRequired(change)) expect(refusals[change.do]).not.toBeNull();
    }
  });

  it("steps, decisions, samples and operator actions change no table", () => {
    for (const kind of ["step.done", "decision.made", "sample.taken", "notes.taken", "operator.action"] as const) {
      expect(changesOf(record(kind), at("run"))).toEqual([]);
    }
  });

  it("an outbox intent opens an item, an inline one does not", () => {
    const inline = changesOf(record("effect.intended", { dispatch: "inline" }), at("run"));
    expect(kindsOf(inline)).toEqual(["effect.create"]);
    expect(only(inline, "effect.create")).toMatchObject({ authority: 9, item: null });
    const outbox = changesOf(record("effect.intended", { dispatch: "outbox", businessKey: "b" }), at("run"));
    expect(kindsOf(outbox)).toEqual(["effect.create", "business_key.claim", "lease.create", "record.create"]);
    expect(only(outbox, "effect.create")).toMatchObject({ authority: 101, item: 101 });
    expect(only(outbox, "lease.create")).toMatchObject({ journal: 101, token: 5n, nextReactor: "outbox", run: 9 });
  });

  it("UNKNOWN hands an inline effect over to an item; an item keeps its own", () => {
    const inline = changesOf(record("effect.settled", { to: "UNKNOWN" }), at("run"));
    expect(only(inline, "effect.status")).toMatchObject({ newAuthority: 101, by: 9 });
    expect(only(inline, "lease.create")).toMatchObject({ journal: 101, nextReactor: "reconciler" });
    const item = changesOf(record("effect.settled", { run: 3, to: "UNKNOWN" }), at("item"));
    expect(kindsOf(item)).toEqual(["effect.status"]);
    expect(only(item, "effect.status")).toMatchObject({ newAuthority: null, by: 9, run: 3 });
  });

  it("only an item sends a note about an outcome to its run", () => {
    for (const to of ["CONFIRMED", "FAILED"] as const) {
      expect(kindsOf(changesOf(record("effect.settled", { to }), at("run")))).not.toContain("note.create");
    }
    for (const to of ["CONFIRMED", "FAILED", "STUCK"] as const) {
      const note = only(changesOf(record("effect.settled", { run: 3, to }), at("item")), "note.create");
      expect(note).toMatchObject({ journal: 3, kind: "effect.outcome", required: false });
    }
    expect(kindsOf(changesOf(record("effect.settled", { run: 3, to: "PENDING" }), at("item")))).toEqual([
      "effect.status",
    ]);
  });

  it("only the run makes an armed obligation due", () => {
    const retried = changesOf(record("obligation.settled", { run: 3, to: "PENDING" }), at("item"));
    expect(only(retried, "effect.status").from.split(",").sort()).toEqual(["COMMITTED", "STUCK", "UNKNOWN"]);
    expect(kindsOf(changesOf(record("obligation.due"), at("run")))).toEqual([
      "obligations.make_due",
      "obligations.release_next",
    ]);
  });

  it("a surplus without a compensation is stuck and waits for no reactor", () => {
    const known = changesOf(record("obligation.surplus", { name: "undo" }), at("run"));
    expect(only(known, "effect.create")).toMatchObject({ status: "PENDING", surplus: true });
    expect(only(known, "lease.create").nextReactor).toBe("compensation");
    const unknown = changesOf(record("obligation.surplus"), at("run"));
    expect(only(unknown, "effect.create")).toMatchObject({ status: "STUCK", surplus: true });
    expect(only(unknown, "lease.create").nextReactor).toBeNull();
  });

  it("a decision withdraws everything that is open", () => {
    expect(kindsOf(changesOf(record("run.decided"), at("run")))).toEqual([
      "run.phase",
      "effects.withdraw",
      "business_keys.sweep",
      "items.sweep",
      "gates.withdraw",
      "timers.cancel",
    ]);
  });

  it("an end requires everything settled and keeps the decided outcome", () => {
    const end = (status: "COMPLETED" | "FAILED" | "COMPENSATED") =>
      changesOf({ kind: "run.ended", data: { status, notesTaken: 4 } }, at("run"));
    expect(kindsOf(end("COMPLETED"))).toEqual([
      "run.assert_settled",
      "run.phase",
      "obligations.discharge",
      "lease.release",
    ]);
    expect(kindsOf(end("FAILED"))).toEqual(["run.assert_settled", "run.phase", "lease.release"]);
    expect(only(end("COMPLETED"), "run.assert_settled").armed).toBe(false);
    expect(only(end("FAILED"), "run.assert_settled").armed).toBe(true);
    expect(only(end("FAILED"), "run.phase")).toMatchObject({ decided: "failed", cause: null, outcome: null });
    expect(only(end("COMPENSATED"), "run.phase")).toMatchObject({ decided: null, from: "COMPENSATING" });
    expect(only(end("FAILED"), "lease.release")).toMatchObject({ notesTaken: 4, open: false });
    const direct = changesOf({ kind: "run.ended", data: { status: "FAILED", notesTaken: 0, outcome: 1 } }, at("run"));
    expect(only(direct, "run.phase")).toMatchObject({ cause: "failed", outcome: "1" });
  });

  it("compensation starts once nothing is in doubt, after a failure or a cancellation", () => {
    const changes = changesOf(record("run.compensating"), at("run"));
    expect(kindsOf(changes)).toEqual([
      "run.assert_settled",
      "run.phase",
      "obligations.make_due",
      "obligations.release_next",
    ]);
    expect(only(changes, "run.phase").decided).toBe("failed,cancelled");
  });

  it("a child is created in its parent's tenant", () => {
    const changes = changesOf(record("child.started", { pos: 4 }), at("run"));
    expect(only(changes, "run.create")).toMatchObject({ journal: 101, tenant: null, parent: 9, parentPos: 4 });
    expect(only(changes, "lease.create")).toMatchObject({ source: 9, token: 0n, nextReactor: "recovery" });
    expect(only(changes, "record.create")).toMatchObject({ seq: 1, token: 0n, kind: "run.created" });
  });

  it("creation writes a row for each budget", () => {
    const data = { ...samples["run.created"], budget: { usd: 5, tokens: 6 } };
    const changes = changesOfCreation("acme", data, at("run"));
    expect(kindsOf(changes)).toEqual(["run.create", "lease.create", "record.create", "budget.create", "budget.create"]);
  });

  it("a value keeps as many versions as its limit allows", () => {
    const changes = changesOf(record("value.written", { version: 25 }), at("run"));
    expect(only(changes, "value.put")).toMatchObject({ version: 25, source: 9 });
    expect(only(changes, "value.log").through).toBe(15);
  });
});

describe("contention", () => {
  it("is on the row outside the own journal", () => {
    const note = {
      do: "note.create",
      journal: 3,
      kind: "child.settled",
      body: "",
      required: false,
      orAncestor: false,
    } as const;
    expect(contended(note)).toBe(contended({ do: "lease.wake", journal: 3, nextReactor: "w", delayMs: 0 }));
    expect(contended(note)).not.toBe(contended({ ...note, journal: 4 }));
    expect(contended({ do: "gates.withdraw", run: 3 })).toBeUndefined();
    const reserve = { do: "budget.reserve", by: 1, run: 3, unit: "usd", amount: 1, max: 64 } as const;
    expect(contended(reserve)).toBe(contended({ ...reserve, by: 2, unit: "eur" }));
  });
});
