import { describe, expect, it } from "vitest";
import type { EffectRow } from "../../src/model/rows.ts";
import type { RunView } from "../../src/store/contract/store.ts";
import { type Evidence, judge as judgement, type Started } from "../../tools/chaos/judge.ts";
import type { Deed } from "../../tools/chaos/world.ts";

const judge = (evidence: Evidence): readonly string[] => judgement(evidence).rules.flatMap(({ broken }) => broken);

const run = (id: string, status: string, outcome: unknown = null): RunView =>
  ({ id, status, outcome, endedAt: status === "WAITING" ? null : 1 }) as unknown as RunView;

/** Deeds as "name n", one after the other, 100 ms apart. */
const deeds = (of: string, ...lines: string[]): Deed[] =>
  lines.map((line, k) => {
    const [name = "", n = "0"] = line.split(" ");
    return { run: of, name, what: name, n: Number(n), key: `${of}:${line}`, token: "1", worker: "w", at: k * 100 };
  });

const effect = (key: string, status: string, more: Partial<EffectRow> = {}): EffectRow =>
  ({ name: "pay", key, status, semantics: "non_idempotent", role: "effect", ...more }) as unknown as EffectRow;

const one = (flow: string, more: Partial<Started> = {}): Started => ({ id: "r", flow, ms: 100, ...more });
const evidence = (parts: Partial<Evidence>): Evidence => ({ started: [], runs: [], effects: [], deeds: [], ...parts });

const saga = ["book 1", "reserve 2", "rent 3", "book 4"];
const undone = ["unbook 4", "unrent 3", "unreserve 2", "unbook 1"];
const sagaOf = (...lines: string[]): Evidence =>
  evidence({ started: [one("saga")], runs: [run("r", "COMPENSATED")], deeds: deeds("r", ...lines) });
const acts = ["pay 2", "wire 3", "mail 4", "post 5"];
const actsOf = (...lines: string[]): Evidence =>
  evidence({ started: [one("acts")], runs: [run("r", "COMPLETED")], deeds: deeds("r", ...lines) });

describe("the judge of the chaos", () => {
  it("finds nothing where everything is in order", () => {
    expect(judge(sagaOf(...saga, ...undone))).toEqual([]);
    expect(judge(actsOf("pay 2", "wire 3", "post 5", "mail 4"))).toEqual([]);
  });

  it.each<[string, RegExp, Evidence]>([
    ["a run that is gone", /is not there/, evidence({ started: [one("family")] })],
    ["a run that waits for ever", /r is WAITING/, evidence({ started: [one("asked")], runs: [run("r", "WAITING")] })],
    ["a run that ended otherwise", /not COMPLETED/, evidence({ started: [one("acts")], runs: [run("r", "FAILED")] })],
    ["a child that lives", /child c is WAITING/, evidence({ runs: [run("c", "WAITING")] })],
    ["an act done twice", /done 2 times: r pay 2/, actsOf("pay 2", ...acts)],
    ["an act not done", /did wire 3, mail 4, post 5 in/, actsOf(...acts.slice(1))],
    ["undone oldest first", /newest first/, sagaOf(...saga, ...undone.toReversed())],
    ["undone in part", /newest first/, sagaOf(...saga, ...undone.slice(0, 3))],
    ["undone twice", /done 2 times: r unbook 4/, sagaOf(...saga, "unbook 4", ...undone)],
    ["not undone at all", /undid nothing/, sagaOf(...saga)],
    ["undone in a healthy run", /not nothing/, actsOf(...acts, "unpay 2")],
    ["done after undoing", /after it had begun to undo/, sagaOf(...saga.slice(0, 3), ...undone, "book 4")],
  ])("finds %s", (_, words, parts) => {
    expect(judge(parts).join("\n")).toMatch(words);
  });

  it("finds a timer that fired too early, and believes one that fired late", () => {
    const slept = (ms: number) =>
      judge(
        evidence({
          started: [one("nap", { ms })],
          runs: [run("r", "COMPLETED")],
          deeds: deeds("r", "mail 1", "mail 2"),
        }),
      );
    expect(slept(103)).toEqual(["the timer of run r fired after 100 ms, not 103: too early"]);
    expect([slept(102), slept(20)]).toEqual([[], []]);
  });

  it("finds a signal that was lost, and a gate that did not time out", () => {
    const asked = (outcome: unknown) =>
      judge(
        evidence({
          started: [one("asked", { said: "yes" })],
          runs: [run("r", "COMPLETED", outcome)],
          deeds: deeds("r", "mail 1"),
        }),
      );
    expect(asked("yes")).toEqual([]);
    expect(asked("timeout")).toEqual(["run r got timeout at its gate, not yes"]);
  });

  it("finds beliefs that are not true", () => {
    const believes = (...effects: EffectRow[]) => judge(evidence({ effects, deeds: deeds("x", "pay 1") }));
    expect(believes(effect("x:pay 1", "CONFIRMED"), effect("other", "FAILED"))).toEqual([]);
    expect(believes(effect("other", "CONFIRMED"))).toEqual([expect.stringContaining("the world knows nothing of it")]);
    expect(believes(effect("x:pay 1", "FAILED"))).toEqual([expect.stringContaining("the world has done it")]);
    expect(believes(effect("x:pay 1", "UNKNOWN"))).toEqual([expect.stringContaining("still UNKNOWN")]);
    expect(believes(effect("other", "COMPENSATED", { role: "compensation" }))).toHaveLength(1);
  });

  it("finds a singleton with two holders, and a guard that let a stale one act", () => {
    const lead = (token: string, worker: string) => ({ token, worker, at: 0 });
    expect(judge(evidence({ leads: [lead("1", "a"), lead("1", "a"), lead("2", "b")] }))).toEqual([]);
    expect(judge(evidence({ leads: [lead("1", "a"), lead("1", "b")] }))).toEqual([
      "the singleton acted under token 1 in a and b",
    ]);
    expect(judge(evidence({ leads: [lead("10", "b"), lead("9", "a")] }))).toEqual([
      "the singleton's guard let a act under 9 after 10",
    ]);
  });

  it("finds a token with two owners", () => {
    const owners = (...who: string[]) => judge(evidence({ owners: new Map([["pay k 7", new Set(who)]]) }));
    expect(owners("a")).toEqual([]);
    expect(owners("a", "b")).toEqual(["one token, several owners: pay k 7 was used by a and b"]);
  });

  it("finds a budget that was overrun, or not used up", () => {
    const spent = (outcome: number) =>
      judge(
        evidence({
          started: [one("spender")],
          runs: [run("r", "COMPLETED", outcome)],
          deeds: deeds("r", "mail 1"),
        }),
      );
    expect([spent(3), spent(4), spent(2)].map(({ length }) => length)).toEqual([0, 1, 1]);
  });

  it("does not judge a timer under which the machine's clock was set", () => {
    const napped = (...unsteady: { from: number; until: number }[]) =>
      judge(
        evidence({
          started: [one("nap", { ms: 5_000 })],
          runs: [run("r", "COMPLETED")],
          deeds: deeds("r", "mail 1", "mail 2").map((deed) => ({ ...deed, at: deed.at + 20_000 })),
          unsteady,
        }),
      );
    const set = (from: number, until: number): number => napped({ from, until }).length;
    expect([napped().length, set(20_050, 20_060), set(21_000, 22_000), set(1_000, 2_000), set(1_000, 20_050)]).toEqual([
      1, 0, 1, 1, 0,
    ]);
  });

  describe("where acknowledged commits may be lost", () => {
    const epoch = 1n << 40n;
    const lossy = (lines: readonly string[], tokens: readonly bigint[], runs = [run("r", "COMPLETED")]) =>
      judgement(
        evidence({
          started: [one("acts")],
          runs,
          deeds: deeds("r", ...lines).map((deed, k) => ({ ...deed, token: String(tokens[k] ?? epoch) })),
          loss: true,
        }),
      );
    const brokenIn = ({ rules }: ReturnType<typeof lossy>) => rules.flatMap(({ broken }) => broken);

    it("a start that is gone is told, and is not a broken promise", () => {
      const verdict = lossy([], [], []);
      expect([brokenIn(verdict), verdict.lost]).toEqual([[], ["1 acknowledged starts"]]);
    });

    it("what was undone again, because that was forgotten, had its place in the order the first time", () => {
      const undone = (...lines: string[]) => {
        const started = [one("saga")];
        const tokens = lines.map((_, k) => String(epoch * BigInt(k + 1)));
        const all = deeds("r", ...saga, ...lines).map((deed, k) => ({
          ...deed,
          token: tokens[k - saga.length] ?? "1",
        }));
        return judge(evidence({ started, runs: [run("r", "COMPENSATED")], deeds: all, loss: true }));
      };
      const [fourth, third, second, first] = saga.toReversed().map((line) => `un${line}`) as [string, ...string[]];
      expect(undone(fourth, third!, second!, third!, first!)).toEqual([]);
      expect(undone(fourth, second!, third!, first!)).toEqual([expect.stringContaining("newest first")]);
    });

    it("an act may be done once more in the next epoch, and in no other way", () => {
      const again = lossy(["pay 2", ...acts], [3n]);
      expect([brokenIn(again), again.lost]).toEqual([
        [],
        ["1 acts that were done again because their record was lost"],
      ]);
      expect(brokenIn(lossy(["pay 2", ...acts], []))).toEqual([expect.stringContaining("done 2 times: r pay 2")]);
      expect(brokenIn(lossy(["mail 4", ...acts], [3n]))).toEqual([expect.stringContaining("done 2 times: r mail 4")]);
    });
  });
});
