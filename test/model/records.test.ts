import { describe, expect, it } from "vitest";
import { encode } from "../../src/base/codec.ts";
import { itemKinds, nameKinds, noteKinds, storeKinds } from "../../src/model/kinds.ts";
import { encodeBody } from "../../src/model/projection.ts";
import { recordFault } from "../../src/model/record-fault.ts";
import { isRecordKind, type RecordKind, recordKinds, recordVersion } from "../../src/model/records.ts";
import { decodeRecord } from "../../src/store/decode-rows.ts";
import { samples } from "../../testkit/conformance/misplaced.ts";

const stored = (kind: string, body: string) => ({ journal: 7, seq: 3, token: 2n ** 62n, at: 5, kind, body });

describe("the closed union of records", () => {
  it("has a sample of every kind, and no other kind", () => {
    expect([...recordKinds].sort()).toEqual(Object.keys(samples).sort());
    for (const kind of ["step.undone", "", "__proto__", "constructor", "toString", "STEP.DONE", "step.done "]) {
      expect(isRecordKind(kind), kind).toBe(false);
    }
  });

  it.each(recordKinds)("%s: accepts its sample, rejects unknown and missing fields", (kind) => {
    const data = samples[kind] as Record<string, unknown>;
    expect(recordFault(kind, data)).toBeUndefined();
    expect(recordFault(kind, { ...data, colour: "red" })).toContain("colour");
    for (const odd of [undefined, null, 5, "text", []]) expect(recordFault(kind, odd), String(odd)).toBeDefined();
    for (const field of requiredFields(kind)) {
      const { [field]: _gone, ...rest } = data;
      expect(recordFault(kind, rest), `without ${field}`).toContain(field);
    }
  });

  it("sub 0 is the effect, never an obligation", () => {
    for (const kind of ["obligation.armed", "obligation.due", "obligation.surplus", "obligation.settled"] as const) {
      expect(recordFault(kind, { ...samples[kind], sub: 0 })).toContain("sub");
    }
  });

  it("a kind of note or of the store belongs to no other group", () => {
    for (const kind of noteKinds) expect([storeKinds, itemKinds, nameKinds].some((set) => set.has(kind))).toBe(false);
    for (const kind of storeKinds) expect([itemKinds, nameKinds].some((set) => set.has(kind))).toBe(false);
    for (const kind of nameKinds) expect(itemKinds.has(kind)).toBe(true);
  });
});

describe("reading a stored record", () => {
  it.each(recordKinds)("%s survives the round trip", (kind) => {
    const record = decodeRecord(stored(kind, encodeBody(samples[kind])));
    expect(record).toEqual({ journal: 7, seq: 3, token: 2n ** 62n, at: 5, kind, data: samples[kind] });
  });

  it("the version comes first, so that an old reader can refuse", () => {
    expect(encodeBody({ pos: 1 })).toBe(`{"v":${recordVersion},"pos":1}`);
  });

  it.each([
    ["a newer version", "step.done", encode({ v: recordVersion + 1, pos: 0, name: "s" })],
    ["no version", "step.done", encode({ pos: 0, name: "s" })],
    ["a kind of the future", "step.dreamt", encode({ v: recordVersion, pos: 0 })],
    ["a kind named like an inherited property", "constructor", encode({ v: recordVersion })],
    ["a newer codec", "step.done", '{"$codec":999,"data":{"v":1}}'],
  ])("%s is an error, never skipped", (_, kind, body) => {
    expect(() => decodeRecord(stored(kind, body))).toThrow(
      expect.objectContaining({ code: "TAPE_RECORD_NEWER", details: expect.objectContaining({ journal: 7, seq: 3 }) }),
    );
  });
});

/** A sample has every required field, so omitting one must fail. `value`-like fields may be undefined. */
function requiredFields(kind: RecordKind): string[] {
  const anything = ["input", "outcome", "value", "error", "args"];
  const optional: Partial<Record<RecordKind, readonly string[]>> = {
    "decision.made": ["model", "usage"],
  };
  return Object.keys(samples[kind]).filter(
    (field) => !anything.includes(field) && !(optional[kind] ?? []).includes(field),
  );
}

describe("records with a hand-written check", () => {
  it.each<["step.done" | "sleep.ended", unknown, boolean]>([
    ["sleep.ended", { pos: 0, fired: true }, true],
    ["sleep.ended", { pos: 7 }, true],
    ["sleep.ended", { pos: 0, fired: false }, false],
    ["sleep.ended", { pos: 0, fired: true, more: 1 }, false],
    ["sleep.ended", { pos: -1, fired: true }, false],
    ["sleep.ended", { pos: 0.5, fired: true }, false],
    ["sleep.ended", { fired: true }, false],
    ["sleep.ended", null, false],
    ["step.done", { pos: 0, name: "s", value: 1 }, true],
    ["step.done", { pos: 0, name: "" }, false],
    ["step.done", { pos: "0", name: "s" }, false],
    ["step.done", { pos: 0, name: "s", more: 1 }, false],
  ])("%s %j: %s, like the schema", (kind, data, valid) => {
    expect(recordFault(kind, data) === undefined).toBe(valid);
  });
});
