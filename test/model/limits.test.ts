import { describe, expect, it } from "vitest";
import { defaultLimits, type Limits } from "../../src/model/limits.ts";
import type { NewRecord } from "../../src/model/records.ts";
import {
  checkEntry,
  checkName,
  checkPayload,
  checkRunSpec,
  checkWhole,
  pageLimit,
} from "../../src/store/validate/entry.ts";

const limits: Limits = {
  ...defaultLimits,
  nameLength: 80,
  payloadBytes: 64,
  appendRecords: 3,
  journalRecords: 10,
  pageRows: 5,
};
const tooLarge = (limit: keyof Limits) =>
  expect.objectContaining({ code: "TAPE_TOO_LARGE", details: expect.objectContaining({ limit }) });
const badInput = expect.objectContaining({ code: "TAPE_BAD_INPUT" });
const step = (name = "s", value: unknown = 1): NewRecord => ({ kind: "step.done", data: { pos: 0, name, value } });

describe("limits", () => {
  it("are all positive integers", () => {
    for (const [name, value] of Object.entries(defaultLimits)) {
      expect(Number.isSafeInteger(value) && value > 0, name).toBe(true);
    }
  });

  it("bound names, counted in UTF-16 units", () => {
    expect(() => checkName("id", "x".repeat(80), limits)).not.toThrow();
    expect(() => checkName("id", "x".repeat(81), limits)).toThrow(tooLarge("nameLength"));
    expect(() => checkName("id", "😀".repeat(40), limits)).not.toThrow();
    expect(() => checkName("id", "😀".repeat(41), limits)).toThrow(tooLarge("nameLength"));
  });

  it.each(["", "\0", "a\0", "\ud800", 5, null, undefined, {}])("reject the name %j", (text) => {
    expect(() => checkName("id", text, limits)).toThrow(badInput);
  });

  it("bound names inside records", () => {
    expect(() => checkEntry({ after: 1, records: [step("x".repeat(81))] }, limits)).toThrow(tooLarge("nameLength"));
  });

  it("bound payloads, counted in bytes of UTF-8", () => {
    expect(checkPayload("v", () => "x".repeat(64), limits)).toHaveLength(64);
    expect(() => checkPayload("v", () => "x".repeat(65), limits)).toThrow(tooLarge("payloadBytes"));
    expect(() => checkPayload("v", () => "é".repeat(32), limits)).not.toThrow();
    expect(() => checkPayload("v", () => "é".repeat(33), limits)).toThrow(tooLarge("payloadBytes"));
    expect(() => checkEntry({ after: 1, records: [step("s", "x".repeat(64))] }, limits)).toThrow(
      tooLarge("payloadBytes"),
    );
  });

  it("bound the records of an append and of a journal", () => {
    const entry = (after: number, count: number) => ({ after, records: Array.from({ length: count }, () => step()) });
    expect(() => checkEntry(entry(1, 3), limits)).not.toThrow();
    expect(() => checkEntry(entry(1, 4), limits)).toThrow(tooLarge("appendRecords"));
    expect(() => checkEntry(entry(7, 3), limits)).not.toThrow();
    expect(() => checkEntry(entry(8, 3), limits)).toThrow(tooLarge("journalRecords"));
    expect(() => checkEntry(entry(1, 0), limits)).toThrow(badInput);
  });

  it("cap the rows of a page and reject bad numbers", () => {
    expect(pageLimit(undefined, limits)).toBe(5);
    expect(pageLimit(2, limits)).toBe(2);
    expect(pageLimit(1_000, limits)).toBe(5);
    for (const bad of [0, -1, 1.5, Number.NaN]) expect(() => pageLimit(bad, limits)).toThrow(badInput);
  });

  it.each([-1, 1.5, Number.NaN, 2 ** 53, "1", 1n, null])("reject the integer %s", (value) => {
    expect(() => checkWhole("n", value)).toThrow(badInput);
  });

  it("bound the labels and budget units of a run", () => {
    const spec = { id: "r", workflow: "w", input: 1 };
    const wide = { ...limits, payloadBytes: 4_096 };
    expect(() => checkRunSpec({ ...spec, labels: { team: "" }, budget: { usd: 5 } }, wide)).not.toThrow();
    expect(() => checkRunSpec({ ...spec, labels: { ["x".repeat(81)]: "v" } }, wide)).toThrow(tooLarge("nameLength"));
    expect(() => checkRunSpec({ ...spec, labels: { a: "x".repeat(81) } }, wide)).toThrow(tooLarge("nameLength"));
    expect(() => checkRunSpec({ ...spec, labels: { a: "\0" } }, wide)).toThrow(badInput);
    expect(() => checkRunSpec({ ...spec, budget: { "": 5 } }, wide)).toThrow(badInput);
  });

  it("detect whether an entry is plain and whether it releases the lease", () => {
    const released: NewRecord = { kind: "term.ended", data: { reason: "released", notesTaken: 0 } };
    expect(checkEntry({ after: 1, records: [step(), step()] }, limits)).toMatchObject({ plain: true, releases: false });
    expect(checkEntry({ after: 1, records: [step(), released] }, limits)).toMatchObject({
      plain: false,
      releases: true,
    });
    expect(() => checkEntry({ after: 1, records: [released, step()] }, limits)).toThrow(badInput);
  });
});
