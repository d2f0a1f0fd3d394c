import { describe, expect, it } from "vitest";
import type { LeaseRow } from "../../src/model/rows.ts";
import {
  mayTake,
  previousTermOf,
  stallYieldMs,
  startReasonOf,
  viewOf,
  yieldsAfterStall,
} from "../../src/store/lease-rules.ts";

const now = 1_000;
const held: LeaseRow = {
  journal: 2,
  kind: "name",
  tenant: "acme",
  run: 2,
  workflow: "",
  checkpoint: null,
  build: null,
  begins: 1,
  token: 7n,
  nonce: 5n,
  owner: "o",
  label: "l",
  reactor: "agent",
  ttlMs: 500,
  expiresAt: now + 100,
  acquiredAt: 600,
  reason: "start",
  renewals: 1,
  renewedAt: 600,
  longestGapMs: 0,
  progress: 0,
  progressAt: 600,
  progressNote: null,
  maxStallMs: null,
  doomed: false,
  paused: false,
  stalled: false,
  notes: 0,
  open: true,
  nextReactor: null,
  dueAt: 0,
  lastEndReason: null,
  queue: null,
  slot: null,
};

/** States that no idle store shows: a takeover between its announcement and the new token, and a restored store. */
describe("a doomed lease", () => {
  const announced = { ...held, doomed: true };
  const restored = { ...held, doomed: true, expiresAt: now, lastEndReason: "superseded" } as const;
  const claimant = { owner: "p", label: "p", reactor: "agent", ttlMs: 500 };

  it("ends as manual if it was live when the takeover announced itself", () => {
    expect(startReasonOf(announced, now)).toBe("manual");
    expect(previousTermOf(announced, now, 4, "manual")?.endReason).toBe("manual");
  });

  it("may be taken by any claimant if the announcing one never returns", () => {
    expect(mayTake(announced, now, { expect: "free_or_expired", claimant })).toBeUndefined();
    expect(mayTake(announced, now, { expect: "free", claimant })?.code).toBe("TAPE_LEASE_HELD");
    expect(viewOf(announced, now, null)).toMatchObject({ state: "DOOMED", remainingMs: 0 });
  });

  it("of a restored store counts as superseded, and the next term as recovery", () => {
    expect([startReasonOf(restored, now), startReasonOf({ ...restored, kind: "run" }, now)]).toEqual([
      "timeout",
      "recovery",
    ]);
    expect(previousTermOf(restored, now, 4, "timeout")?.endReason).toBe("superseded");
  });

  it("leaves a stalled run to other processes for a while, and nothing else", () => {
    const stalled: LeaseRow = { ...held, kind: "run", stalled: true, expiresAt: now };
    expect(yieldsAfterStall(stalled, now, { owner: "o" })).toBe(true);
    expect(yieldsAfterStall(stalled, now + stallYieldMs - 1, { owner: "o" })).toBe(true);
    expect(yieldsAfterStall(stalled, now + stallYieldMs, { owner: "o" })).toBe(false);
    expect(yieldsAfterStall(stalled, now, { owner: "another" })).toBe(false);
    expect(yieldsAfterStall({ ...stalled, stalled: false }, now, { owner: "o" })).toBe(false);
    expect(yieldsAfterStall({ ...stalled, kind: "item" }, now, { owner: "o" })).toBe(false);
  });
});
