import { describe, expect, it } from "vitest";
import type { EffectRow } from "../../src/model/rows.ts";
import type { RunView } from "../../src/store/contract/store.ts";
import { type Evidence, judge as judgement, type StartedRun } from "../../tools/chaos/judge.ts";
import type { WorldRequest } from "../../tools/chaos/world.ts";

const judge = (evidence: Evidence): readonly string[] => judgement(evidence).rules.flatMap(({ broken }) => broken);

const run = (id: string, status: string, outcome: unknown = null): RunView =>
  ({ id, status, outcome, endedAt: status === "WAITING" ? null : 1 }) as unknown as RunView;

/** Requests from texts like "name n", 100 ms apart. */
const requests = (of: string, ...lines: string[]): WorldRequest[] =>
  lines.map((line, k) => {
    const [name = "", n = "0"] = line.split(" ");
    return { run: of, name, what: name, n: Number(n), key: `${of}:${line}`, token: "1", worker: "w", at: k * 100 };
  });

const effect = (key: string, status: string, more: Partial<EffectRow> = {}): EffectRow =>
  ({ name: "pay", key, status, semantics: "non_idempotent", role: "effect", ...more }) as unknown as EffectRow;

const startedRun = (flow: string, more: Partial<StartedRun> = {}): StartedRun => ({ id: "r", flow, ms: 100, ...more });
const evidence = (parts: Partial<Evidence>): Evidence => ({
  started: [],
  runs: [],
  effects: [],
  requests: [],
  ...parts,
});

const saga = ["book 1", "reserve 2", "rent 3", "book 4"];
const compensations = ["unbook 4", "unrent 3", "unreserve 2", "unbook 1"];
const sagaOf = (...lines: string[]): Evidence =>
  evidence({ started: [startedRun("saga")], runs: [run("r", "COMPENSATED")], requests: requests("r", ...lines) });
const payment = ["pay 2", "wire 3", "mail 4", "post 5"];
const paymentOf = (...lines: string[]): Evidence =>
  evidence({ started: [startedRun("payment")], runs: [run("r", "COMPLETED")], requests: requests("r", ...lines) });

describe("the judge of chaos runs", () => {
  it("finds nothing when everything is in order", () => {
    expect(judge(sagaOf(...saga, ...compensations))).toEqual([]);
    expect(judge(paymentOf("pay 2", "wire 3", "post 5", "mail 4"))).toEqual([]);
  });

  it.each<[string, RegExp, Evidence]>([
    ["a lost run", /does not exist/, evidence({ started: [startedRun("family")] })],
    [
      "a run that waits forever",
      /r is WAITING/,
      evidence({ started: [startedRun("approval")], runs: [run("r", "WAITING")] }),
    ],
    [
      "a run that ended differently",
      /not COMPLETED/,
      evidence({ started: [startedRun("payment")], runs: [run("r", "FAILED")] }),
    ],
    ["a child that has not ended", /child c is WAITING/, evidence({ runs: [run("c", "WAITING")] })],
    ["an effect that happened twice", /happened 2 times: r pay 2/, paymentOf("pay 2", ...payment)],
    ["a missing effect", /executed wire 3, mail 4, post 5, not/, paymentOf(...payment.slice(1))],
    ["compensation oldest first", /newest first/, sagaOf(...saga, ...compensations.toReversed())],
    ["partial compensation", /newest first/, sagaOf(...saga, ...compensations.slice(0, 3))],
    ["a repeated compensation", /happened 2 times: r unbook 4/, sagaOf(...saga, "unbook 4", ...compensations)],
    ["missing compensation", /compensated nothing/, sagaOf(...saga)],
    ["compensation in a healthy run", /not nothing/, paymentOf(...payment, "unpay 2")],
    [
      "an effect after the first compensation",
      /after its first compensation/,
      sagaOf(...saga.slice(0, 3), ...compensations, "book 4"),
    ],
  ])("finds %s", (_, message, parts) => {
    expect(judge(parts).join("\n")).toMatch(message);
  });

  it("finds a timer that fired early, and accepts a late one", () => {
    const slept = (ms: number) =>
      judge(
        evidence({
          started: [startedRun("nap", { ms })],
          runs: [run("r", "COMPLETED")],
          requests: requests("r", "mail 1", "mail 2"),
        }),
      );
    expect(slept(103)).toEqual(["the timer of run r fired after 100 ms, not 103: too early"]);
    expect([slept(102), slept(20)]).toEqual([[], []]);
  });

  it("finds a lost signal, and a gate that did not time out", () => {
    const approval = (outcome: unknown) =>
      judge(
        evidence({
          started: [startedRun("approval", { answer: "yes" })],
          runs: [run("r", "COMPLETED", outcome)],
          requests: requests("r", "mail 1"),
        }),
      );
    expect(approval("yes")).toEqual([]);
    expect(approval("timeout")).toEqual(["run r got timeout at its gate, not yes"]);
  });

  it("finds journals that disagree with the ledger", () => {
    const journal = (...effects: EffectRow[]) => judge(evidence({ effects, requests: requests("x", "pay 1") }));
    expect(journal(effect("x:pay 1", "CONFIRMED"), effect("other", "FAILED"))).toEqual([]);
    expect(journal(effect("other", "CONFIRMED"))).toEqual([expect.stringContaining("the ledger does not have it")]);
    expect(journal(effect("x:pay 1", "FAILED"))).toEqual([expect.stringContaining("the ledger has it")]);
    expect(journal(effect("x:pay 1", "UNKNOWN"))).toEqual([expect.stringContaining("still UNKNOWN")]);
    expect(journal(effect("other", "COMPENSATED", { role: "compensation" }))).toHaveLength(1);
  });

  it("finds a singleton with two holders, and a guard that accepted a stale one", () => {
    const request = (token: string, worker: string) => ({ token, worker, at: 0 });
    expect(judge(evidence({ singletonRequests: [request("1", "a"), request("1", "a"), request("2", "b")] }))).toEqual(
      [],
    );
    expect(judge(evidence({ singletonRequests: [request("1", "a"), request("1", "b")] }))).toEqual([
      "the singleton ran under token 1 in a and b",
    ]);
    expect(judge(evidence({ singletonRequests: [request("10", "b"), request("9", "a")] }))).toEqual([
      "the singleton's guard accepted a under 9 after 10",
    ]);
  });

  it("finds a token with two owners", () => {
    const owners = (...workers: string[]) => judge(evidence({ owners: new Map([["pay k 7", new Set(workers)]]) }));
    expect(owners("a")).toEqual([]);
    expect(owners("a", "b")).toEqual(["one token, several owners: pay k 7 was used by a and b"]);
  });

  it("finds a budget that was exceeded, or not used up", () => {
    const spent = (outcome: number) =>
      judge(
        evidence({
          started: [startedRun("spender")],
          runs: [run("r", "COMPLETED", outcome)],
          requests: requests("r", "mail 1"),
        }),
      );
    expect([spent(3), spent(4), spent(2)].map(({ length }) => length)).toEqual([0, 1, 1]);
  });

  it("does not judge a timer while the machine's clock was set", () => {
    const napped = (...clockChanges: { from: number; until: number }[]) =>
      judge(
        evidence({
          started: [startedRun("nap", { ms: 5_000 })],
          runs: [run("r", "COMPLETED")],
          requests: requests("r", "mail 1", "mail 2").map((request) => ({ ...request, at: request.at + 20_000 })),
          clockChanges,
        }),
      );
    const set = (from: number, until: number): number => napped({ from, until }).length;
    expect([napped().length, set(20_050, 20_060), set(21_000, 22_000), set(1_000, 2_000), set(1_000, 20_050)]).toEqual([
      1, 0, 1, 1, 0,
    ]);
  });

  describe("when acknowledged commits may be lost", () => {
    const epoch = 1n << 40n;
    const lossy = (lines: readonly string[], tokens: readonly bigint[], runs = [run("r", "COMPLETED")]) =>
      judgement(
        evidence({
          started: [startedRun("payment")],
          runs,
          requests: requests("r", ...lines).map((request, k) => ({ ...request, token: String(tokens[k] ?? epoch) })),
          loss: true,
        }),
      );
    const brokenIn = ({ rules }: ReturnType<typeof lossy>) => rules.flatMap(({ broken }) => broken);

    it("reports a lost start, which breaks no rule", () => {
      const verdict = lossy([], [], []);
      expect([brokenIn(verdict), verdict.lost]).toEqual([[], ["1 acknowledged starts"]]);
    });

    it("orders a repeated compensation by its first execution", () => {
      const compensated = (...lines: string[]) => {
        const started = [startedRun("saga")];
        const tokens = lines.map((_, k) => String(epoch * BigInt(k + 1)));
        const all = requests("r", ...saga, ...lines).map((request, k) => ({
          ...request,
          token: tokens[k - saga.length] ?? "1",
        }));
        return judge(evidence({ started, runs: [run("r", "COMPENSATED")], requests: all, loss: true }));
      };
      const [fourth, third, second, first] = saga.toReversed().map((line) => `un${line}`) as [string, ...string[]];
      expect(compensated(fourth, third!, second!, third!, first!)).toEqual([]);
      expect(compensated(fourth, second!, third!, first!)).toEqual([expect.stringContaining("newest first")]);
    });

    it("accepts an effect that is repeated once in the next epoch, and nothing else", () => {
      const repeated = lossy(["pay 2", ...payment], [3n]);
      expect([brokenIn(repeated), repeated.lost]).toEqual([
        [],
        ["1 effects that were repeated because their record was lost"],
      ]);
      expect(brokenIn(lossy(["pay 2", ...payment], []))).toEqual([
        expect.stringContaining("happened 2 times: r pay 2"),
      ]);
      expect(brokenIn(lossy(["mail 4", ...payment], [3n]))).toEqual([
        expect.stringContaining("happened 2 times: r mail 4"),
      ]);
    });
  });
});
