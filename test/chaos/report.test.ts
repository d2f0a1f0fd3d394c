import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { unreached } from "../../tools/chaos/evidence.ts";
import { rage } from "../../tools/chaos/rage.ts";
import { reportOf } from "../../tools/chaos/report.ts";
import type { RoundReport } from "../../tools/chaos/round.ts";
import type { Fault, Strike } from "../../tools/chaos/strike.ts";

const strike = (kind: string, bitten: boolean): Strike => ({ kind, bitten, hit: ["a holder"], outcome: ["woken"] });
const round: RoundReport = {
  name: "a round",
  seconds: 7,
  violations: [],
  strikes: [strike("SIGSTOP", true), strike("SIGSTOP", false)],
  faults: [{ kind: "SIGSTOP", counts: "past the TTL" }],
  notRun: [{ kind: "disk full", why: "no disk | here" }],
  states: { "a hand-over": 2 },
  rules: [{ rule: "once", looked: 5, broken: [] }],
  lost: ["3 acknowledged starts"],
  lines: ["runs: 4"],
};
const head = { command: "npm run chaos -- --seed 1", seed: "1", platform: "Node", at: "today", worthless: [] };

describe("the report of the chaos", () => {
  it("says what bit how often, what was not run and why, what was looked at, and how to play it again", () => {
    const text = reportOf([round], head);
    expect(text).toContain("**Every rule held** under 1 faults that bit.");
    expect(text).toContain("| SIGSTOP | a round | 2 | 1 | past the TTL | 2 × a holder | 2 × woken |");
    expect(text).toContain("- NOT RUN: disk full (a round): no disk | here");
    expect(text).toContain("| disk full | a round | NOT RUN | – | no disk \\| here | – | – |");
    expect(text).toContain("| once | 5 | 0 |");
    expect(text).toContain("lost: 3 acknowledged starts");
    expect(text).toContain("npm run chaos -- --seed 1");
  });

  it("is red where a rule was broken or a state was not reached", () => {
    const broken = { ...round, violations: ["pay was done twice"] };
    expect(reportOf([broken], head)).toMatch(/\*\*1 findings\.\*\*[\s\S]*BROKEN: pay was done twice/);
    expect(reportOf([round], { ...head, worthless: ["worthless: no hand-over"] })).toContain("**1 findings.**");
    expect(unreached([{ a: 0, b: 1 }, { a: 0 }])).toEqual(["worthless: there was not a"]);
    expect(unreached([{ a: 0 }, { a: 3 }])).toEqual([]);
    expect(unreached([{ a: 0 }], ["a"])).toEqual([]);
  });

  it("faults go on past their time until each has bitten", async () => {
    const strikes: Strike[] = [];
    const played: string[] = [];
    const fault = (kind: string, bitesAt: number): Fault => {
      let times = 0;
      return {
        kind,
        counts: "",
        weight: 1,
        play: async () => {
          played.push(kind);
          strikes.push(strike(kind, ++times >= bitesAt));
        },
      };
    };
    const faults = [fault("soon", 1), fault("late", 2)];
    await rage({ faults, strikes, random: seededRandom("x"), ms: 1, mended: async () => {} });
    expect(played).toEqual(["soon", "late", "late"]);
  });
});
