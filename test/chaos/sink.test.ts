import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { shortTtl, sqlitePlace } from "../../tools/chaos/places.ts";
import { killFanoutKind } from "../../tools/chaos/sink/faults.ts";
import { judgeSink, lostOf, type SinkEvidence, staleEntries } from "../../tools/chaos/sink/judge.ts";
import type { SinkEntry } from "../../tools/chaos/sink/receiver-messages.ts";
import { runSinkRound } from "../../tools/chaos/sink/round.ts";

const entry = (seq: number, token = "1", more: Partial<SinkEntry> = {}): SinkEntry => ({
  ...{ id: `7:${seq}`, journal: "7", sequence: String(seq).padStart(10, "0"), token },
  ...{ worker: `fanout-${token}`, epoch: 0, unanswered: false, ...more },
});
const evidence: SinkEvidence = {
  started: ["a"],
  runs: [{ id: "a", status: "COMPLETED" }],
  ids: ["7:1", "7:2", "7:3"],
  // The term of token 2 begins at the checkpoint; the last entry is a stale one.
  ledger: [entry(1), entry(2), entry(1, "2"), entry(2, "2"), entry(3, "2"), entry(2)],
  ...{ window: 2, deaths: 1, deadLetters: 0, loss: false },
};
const broken = (changes: Partial<SinkEvidence>): string[] =>
  judgeSink({ ...evidence, ...changes }).flatMap((rule) => rule.broken);

describe("the judge of a sink", () => {
  it("accepts a takeover that repeats a window, and a stale batch under the lower token", () => {
    expect(broken({ ledger: evidence.ledger.slice(0, 5) })).toEqual([]);
    const late = { ...evidence.ledger[1]!, unanswered: true };
    expect(broken({ ledger: [...evidence.ledger.slice(0, 5), late] })).toEqual([]);
    expect(staleEntries(evidence.ledger)).toBe(1);
  });

  it.each<[string, Partial<SinkEvidence>, RegExp]>([
    ["a lost event", { ids: ["7:1", "7:2", "7:3", "7:4"] }, /1 events never arrived, such as 7:4/],
    ["a dead letter", { deadLetters: 1 }, /1 events are dead letters/],
    ["an event from nowhere", { ids: ["7:1", "7:2"] }, /event 7:3 is not in the feed/],
    ["a wrong order", { ledger: [entry(2), entry(1), entry(3)] }, /1 events arrived behind a later one/],
    ["more repeats than a window", { window: 1 }, /term of token 2 repeated 2 of 1 events/],
    ["a repeat after its answer", {}, /event 7:2 was sent again under token 1 after its answer/],
    [
      "two processes of one token",
      { ledger: [entry(1), entry(2, "1", { worker: "z" }), entry(3)] },
      /used by .* and z/,
    ],
    ["a lost start", { started: ["a", "b"] }, /run b does not exist/],
    ["a run that did not end", { runs: [{ id: "a", status: "WAITING" }] }, /run a is WAITING/],
  ])("finds %s", (_, changes, finding) => {
    expect(broken(changes).join("\n")).toMatch(finding);
  });
});

describe("the judge of a sink whose store loses writes", () => {
  const restored = (epoch: number, token: string): SinkEntry => ({
    ...entry(0, token, { epoch }),
    id: `restored:${epoch}`,
  });
  // Records 2 and 3 were sent and lost; after the restore the journal has another record 2.
  const ledger = [
    ...[entry(1), entry(2), entry(3), restored(1, "9"), entry(1, "9", { epoch: 1 })],
    { ...entry(2, "9", { epoch: 1 }), id: "7:2b" },
  ];
  const after = { ...{ started: ["a", "lost"], ids: ["7:1", "7:2b"] }, ...{ ledger, window: 0, loss: true } };

  it("accepts what was sent and then lost, a repeat from the old checkpoint, and the lost start", () => {
    expect(broken(after)).toEqual([]);
    expect(lostOf({ ...evidence, ...after })).toEqual(["1 acknowledged starts", "2 records whose events were sent"]);
  });

  it.each<[string, Partial<SinkEvidence>, RegExp]>([
    ["an event from nowhere", { ids: ["7:1"] }, /event 7:2b is not in the feed, and no restore followed/],
    [
      "a restore without an announcement",
      { ledger: ledger.filter(({ id }) => id !== "restored:1") },
      /before it was announced/,
    ],
    [
      "a late announcement",
      { ledger: [...ledger.slice(0, 3), ledger[4]!, ledger[3]!, ledger[5]!] },
      /before it was announced/,
    ],
    ["a lost event", { ids: ["7:1", "7:2b", "7:4"] }, /1 events never arrived/],
    ["repeats of a later term", { ledger: [...ledger, entry(1, "11", { epoch: 1 })] }, /token 11 repeated 1 of 0/],
    ["a run that did not end", { runs: [{ id: "a", status: "WAITING" }] }, /run a is WAITING/],
  ])("finds %s", (_, changes, finding) => {
    expect(broken({ ...after, ...changes }).join("\n")).toMatch(finding);
  });
});

// The long version is `npm run chaos -- sink`.
it("a fan-out that is killed in mid-send loses nothing, by its receiver's own ledger", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tape-chaos-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const report = await runSinkRound({
    name: "a sink",
    place: sqlitePlace(folder),
    ttlMs: shortTtl(2),
    ms: 10,
    seed: "suite",
    folder,
    ...{ fanouts: 2, writers: 1 },
    only: ({ kind }) => kind === killFanoutKind || kind === "receiver answers 500",
  });
  console.log(["a sink", ...report.lines].join("\n  "));
  expect(report.violations).toEqual([]);
  expect(report.rules.every(({ checked }) => checked > 0)).toBe(true);
  expect(report.states["a takeover of a sink"]).toBeGreaterThan(0);
}, 120_000);
