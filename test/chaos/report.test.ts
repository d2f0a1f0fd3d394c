import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { unreachedStates } from "../../tools/chaos/evidence.ts";
import type { Fault, Injection } from "../../tools/chaos/fault.ts";
import { injectFaults } from "../../tools/chaos/inject-faults.ts";
import { reportOf } from "../../tools/chaos/report.ts";
import type { RoundReport } from "../../tools/chaos/round.ts";

const injection = (kind: string, effective: boolean): Injection => ({
  kind,
  effective,
  hit: ["a holder"],
  outcome: ["woken"],
});
const round: RoundReport = {
  name: "a round",
  seconds: 7,
  violations: [],
  injections: [injection("SIGSTOP", true), injection("SIGSTOP", false)],
  faults: [{ kind: "SIGSTOP", effectiveWhen: "past the TTL" }],
  notRun: [{ kind: "disk full", why: "no disk | here" }],
  states: { "a takeover": 2 },
  rules: [{ rule: "once", checked: 5, broken: [] }],
  lost: ["3 acknowledged starts"],
  lines: ["runs: 4"],
};
const head = { command: "npm run chaos -- --seed 1", seed: "1", platform: "Node", at: "today", unreached: [] };

describe("the chaos report", () => {
  it("shows effective and omitted faults, checked rules, and the command that repeats it", () => {
    const text = reportOf([round], head);
    expect(text).toContain("**Every rule held** under 1 effective faults.");
    expect(text).toContain("| SIGSTOP | a round | 2 | 1 | past the TTL | 2 × a holder | 2 × woken |");
    expect(text).toContain("- NOT RUN: disk full (a round): no disk | here");
    expect(text).toContain("| disk full | a round | NOT RUN | – | no disk \\| here | – | – |");
    expect(text).toContain("| once | 5 | 0 |");
    expect(text).toContain("Lost, which no guarantee excludes: 3 acknowledged starts");
    expect(text).toContain("npm run chaos -- --seed 1");
  });

  it("fails when a rule was broken or a state was not reached", () => {
    const broken = { ...round, violations: ["pay happened twice"] };
    expect(reportOf([broken], head)).toMatch(/\*\*1 findings\.\*\*[\s\S]*BROKEN: pay happened twice/);
    expect(reportOf([round], { ...head, unreached: ["inconclusive: never reached: a takeover"] })).toContain(
      "**1 findings.**",
    );
    expect(unreachedStates([{ a: 0, b: 1 }, { a: 0 }])).toEqual(["inconclusive: never reached: a"]);
    expect(unreachedStates([{ a: 0 }, { a: 3 }])).toEqual([]);
    expect(unreachedStates([{ a: 0 }], ["a"])).toEqual([]);
  });

  it("injects faults past their time until each kind took effect", async () => {
    const injections: Injection[] = [];
    const injected: string[] = [];
    const fault = (kind: string, effectiveAt: number): Fault => {
      let times = 0;
      return {
        kind,
        effectiveWhen: "",
        weight: 1,
        inject: async () => {
          injected.push(kind);
          injections.push(injection(kind, ++times >= effectiveAt));
        },
      };
    };
    const faults = [fault("soon", 1), fault("late", 2)];
    await injectFaults({ faults, injections, random: seededRandom("x"), ms: 1, repaired: async () => {} });
    expect(injected).toEqual(["soon", "late", "late"]);
  });
});
