import { describe, expect, it } from "vitest";
import {
  type AttemptFacts,
  attemptHistory,
  type FailedCall,
  isInterrupted,
  type Semantics,
  stepVerdict,
  verdictOf,
  verdictOnAbsence,
  verdictOnCrash,
} from "../../src/model/attempt.ts";
import { TapeError } from "../../src/model/errors.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { NotSent } from "../../src/sdk/outcomes.ts";

const semanticses = ["non_idempotent", "idempotent", "read"] as const;
const results = ["refused", "not_sent", "unknown"] as const;
const both = [false, true] as const;

const attempts = 3;
const facts = (own: Partial<AttemptFacts> & { failures?: number; uncertain?: boolean } = {}): AttemptFacts => {
  const { failures = 0, uncertain = false, ...more } = own;
  const history = { failures, uncertain };
  return { semantics: "idempotent", attempts, settlesEarlier: false, interrupted: false, history, ...more };
};
const verdictText = (result: FailedCall, own: Parameters<typeof facts>[0]): string => {
  const { to, reason } = verdictOf(result, facts(own));
  return `${to} ${reason}`;
};

/** Verdicts on an attempt and on the last one of the policy, first without and then with an earlier uncertain attempt. */
type Row = readonly [fresh: string, freshLast: string, uncertain: string, uncertainLast: string];
const refused = "FAILED definite";
const [unsent, unsentLast] = ["PENDING not_sent", "FAILED not_sent"];
const [retried, inDoubt] = ["PENDING ack_lost", "UNKNOWN ack_lost"];
const exhausted = "FAILED exhausted";
const table: Readonly<Record<string, Row>> = {
  "non_idempotent, refused for good": [refused, refused, refused, refused],
  "non_idempotent, refused this time": [refused, refused, inDoubt, inDoubt],
  "non_idempotent, not_sent": [unsent, unsentLast, unsent, inDoubt],
  "non_idempotent, unknown": [inDoubt, inDoubt, inDoubt, inDoubt],
  "idempotent, refused for good": [refused, refused, refused, refused],
  "idempotent, refused this time": [refused, refused, retried, inDoubt],
  "idempotent, not_sent": [unsent, unsentLast, unsent, inDoubt],
  "idempotent, unknown": [retried, inDoubt, retried, inDoubt],
  "read, refused for good": [refused, refused, refused, refused],
  "read, refused this time": [refused, refused, retried, exhausted],
  "read, not_sent": [unsent, unsentLast, unsent, unsentLast],
  "read, unknown": [retried, exhausted, retried, exhausted],
};

function* cases(): Generator<{ name: string; semantics: Semantics; result: FailedCall; settlesEarlier: boolean }> {
  for (const semantics of semanticses) {
    for (const result of results) {
      for (const settlesEarlier of result === "refused" ? [true, false] : [false]) {
        const how = result === "refused" ? `refused ${settlesEarlier ? "for good" : "this time"}` : result;
        yield { name: `${semantics}, ${how}`, semantics, result, settlesEarlier };
      }
    }
  }
}

describe("the verdict on an attempt", () => {
  it("has a row for each semantics and result", () => {
    expect([...cases()].map(({ name }) => name)).toEqual(Object.keys(table));
  });

  it.each([...cases()])("$name", ({ name, result, semantics, settlesEarlier }) => {
    const [fresh, freshLast, uncertain, uncertainLast] = table[name]!;
    const own = { semantics, settlesEarlier };
    expect(verdictText(result, { ...own, failures: 0 })).toBe(fresh);
    expect(verdictText(result, { ...own, failures: 1 })).toBe(fresh);
    expect(verdictText(result, { ...own, failures: 2 })).toBe(freshLast);
    expect(verdictText(result, { ...own, failures: 9 })).toBe(freshLast);
    expect(verdictText(result, { ...own, failures: 1, uncertain: true })).toBe(uncertain);
    expect(verdictText(result, { ...own, failures: 2, uncertain: true })).toBe(uncertainLast);
  });

  it.each([...cases()])("is charged when interrupted only if sent: $name", ({ name, result, ...more }) => {
    const [fresh, freshLast, uncertain, uncertainLast] = table[name]!;
    const own = { ...more, interrupted: true };
    if (result !== "not_sent") {
      expect(verdictText(result, { ...own, failures: 2 })).toBe(freshLast);
      expect(verdictText(result, { ...own, failures: 2, uncertain: true })).toBe(uncertainLast);
      return;
    }
    expect(verdictText(result, { ...own, failures: 2 })).toBe(fresh);
    expect(verdictText(result, { ...own, failures: 3 })).toBe(freshLast);
    expect(verdictText(result, { ...own, failures: 2, uncertain: true })).toBe(uncertain);
    expect(verdictText(result, { ...own, failures: 3, uncertain: true })).toBe(uncertainLast);
  });

  it("hands over early only an idempotent effect that may have happened", () => {
    const own = { attempts: 9, handOverAfter: 3 };
    for (const { name, result, semantics, settlesEarlier } of cases()) {
      const at = (failures: number, uncertain: boolean) =>
        verdictText(result, { ...own, semantics, settlesEarlier, failures, uncertain });
      const [fresh, , afterUncertain] = table[name]!;
      expect([name, at(1, false), at(1, true)]).toEqual([name, fresh, afterUncertain]);
      const early = semantics === "idempotent";
      expect([name, at(2, false)]).toEqual([name, early && result === "unknown" ? inDoubt : fresh]);
      expect([name, at(2, true)]).toEqual([
        name,
        early && afterUncertain.startsWith("PENDING") ? inDoubt : afterUncertain,
      ]);
    }
    expect(verdictText("unknown", { attempts: 2, handOverAfter: 3, failures: 1 })).toBe(inDoubt);
  });

  it.each(["returned", "unstorable"] as const)("%s: confirms the effect, whatever the history", (r) => {
    expect(verdictOf(r)).toEqual({ to: "CONFIRMED", reason: "returned" });
  });

  it("passes failures and uncertainty on to the next attempt", () => {
    for (const interrupted of both) {
      for (const uncertain of both) {
        for (const result of ["not_sent", "unknown"] as const) {
          const { to, history } = verdictOf(result, facts({ failures: 1, uncertain, interrupted }));
          expect(to).toBe("PENDING");
          const free = interrupted && result === "not_sent";
          expect(history).toEqual({
            failures: free ? 1 : 2,
            uncertain: uncertain || result === "unknown",
            interruptions: free ? 1 : 0,
          });
        }
      }
    }
  });

  it("keeps its guarantees in every combination", () => {
    let combinations = 0;
    for (const { result, semantics, settlesEarlier } of cases()) {
      for (const interrupted of both) {
        for (const uncertain of both) {
          for (const handOverAfter of [undefined, 1, 2]) {
            for (let failures = 0; failures < 5; failures++) {
              for (let maxAttempts = 0; maxAttempts < 5; maxAttempts++) {
                const history = { failures, uncertain };
                const own = { semantics, settlesEarlier, interrupted, attempts: maxAttempts, history };
                const input = handOverAfter === undefined ? own : { ...own, handOverAfter };
                const { to, reason, history: left } = verdictOf(result, input);
                const about = JSON.stringify({ result, ...input, to, reason });
                const mayHaveHappened = result === "unknown" || (uncertain && !settlesEarlier);
                if (to === "FAILED") expect(semantics === "read" || !mayHaveHappened, about).toBe(true);
                if (to === "UNKNOWN") expect(semantics !== "read" && mayHaveHappened, about).toBe(true);
                if (to === "PENDING") {
                  expect(semantics !== "non_idempotent" || result === "not_sent", about).toBe(true);
                  expect(left.failures < maxAttempts, about).toBe(true);
                }
                // A definite refusal is not sent again.
                if (settlesEarlier) expect(`${to} ${reason}`, about).toBe(refused);
                expect(left.failures - failures, about).toBe(interrupted && result === "not_sent" ? 0 : 1);
                expect(left.uncertain, about).toBe(uncertain || result === "unknown");
                combinations++;
              }
            }
          }
        }
      }
    }
    expect(combinations).toBe(12 * 2 * 2 * 3 * 25);
  });
});

describe("the verdict on a proven absence", () => {
  const absence = { semantics: "non_idempotent", resends: 0, maxResends: 3, ending: false } as const;

  it.each([
    ["the first time", {}, "PENDING"],
    ["the last time of the policy", { resends: 2 }, "PENDING"],
    ["once the policy is used up", { resends: 3 }, "FAILED"],
    ["without a policy", { maxResends: 0 }, "FAILED"],
    ["in a run that is ending", { ending: true }, "FAILED"],
    ["of an idempotent effect, which its attempts bound", { semantics: "idempotent" as const }, "FAILED"],
    ["of a read", { semantics: "read" as const }, "FAILED"],
  ])("%s", (_, facts, to) => {
    expect(verdictOnAbsence({ ...absence, ...facts })).toEqual({ to, reason: "ABSENT" });
  });
});

describe("a failed attempt of a step", () => {
  it.each([
    [1, 3, false, "retry"],
    [2, 3, false, "retry"],
    [3, 3, false, "fail"],
    [1, 1, false, "fail"],
    [1, 3, true, "fail"],
  ])("%i of %i, final: %s: %s", (attempt, attempts, final, verdict) => {
    expect(stepVerdict({ attempt, attempts, final, outage: undefined })).toBe(verdict);
  });

  it.each([
    [1, 3, false, 0, "retry"],
    [3, 3, false, 0, "outlast"],
    [9, 3, false, 999, "outlast"],
    [9, 3, false, 1_000, "give_up"],
    [1, 3, false, 1_000, "give_up"],
    [9, 3, true, 0, "fail"],
  ])("%i of %i, final: %s, in an outage of %i ms: %s", (attempt, attempts, final, ms, verdict) => {
    expect(stepVerdict({ attempt, attempts, final, outage: { ms, giveUpAfterMs: 1_000 } })).toBe(verdict);
  });
});

it.each([
  ["non_idempotent", "UNKNOWN"],
  ["idempotent", "PENDING"],
  ["read", "PENDING"],
] as const)("a crashed sender leaves a %s effect %s; UNKNOWN if the effect crashes every sender", (s, to) => {
  expect(verdictOnCrash(s)).toEqual({ to, reason: "lease_lost" });
  expect(verdictOnCrash(s, true)).toEqual({ to: "UNKNOWN", reason: "lease_lost" });
});

describe("the history of an effect's attempts", () => {
  const lost = new TapeError("TAPE_LEASE_LOST", "lost");
  const ref = { run: 1, pos: 0, sub: 0 };
  const opened = (failures?: number): NewRecord => ({
    kind: "item.opened",
    data: { ...ref, ...(failures === undefined ? {} : { failures }) },
  });
  const sent: NewRecord = { kind: "effect.dispatched", data: { ...ref, attempt: 1, sendWithinMs: 1 } };
  const to = (to: "PENDING" | "UNKNOWN", reason: string, error?: unknown): NewRecord => ({
    kind: "effect.settled",
    data: { ...ref, to, reason, ...(error === undefined ? {} : { error }) },
  });
  const owed = (reason: string): NewRecord => ({
    kind: "obligation.settled",
    data: { ...ref, sub: 1, to: "PENDING", reason },
  });
  const resolvedAs = (as: string): NewRecord => ({
    kind: "operator.action",
    data: { action: "resolve", actor: "a", reason: "r", detail: { as } } as never,
  });
  const of = (...records: NewRecord[]) => attemptHistory(records, false);

  it.each<readonly [name: string, history: ReturnType<typeof of>, failures: number, uncertain: boolean]>([
    ["nothing", of(), 0, false],
    ["an attempt that was not sent", of(opened(), sent, to("PENDING", "not_sent")), 1, false],
    ["a lost acknowledgement", of(opened(), sent, to("PENDING", "ack_lost")), 1, true],
    ["a crash", of(opened(), sent, to("PENDING", "lease_lost")), 0, true],
    ["a drain before it was sent", of(sent, to("PENDING", "not_sent", new NotSent("x", { cause: lost }))), 0, false],
    ["failures of inline attempts", of(opened(4), sent, to("PENDING", "ack_lost")), 5, true],
    ["one attempt, settled twice", of(sent, to("UNKNOWN", "ack_lost"), to("PENDING", "not_sent")), 1, false],
    [
      "an attempt that an observation did not find",
      of(sent, to("UNKNOWN", "ack_lost"), to("PENDING", "absent")),
      1,
      true,
    ],
    ["a lost lease that the body threw", of(sent, to("PENDING", "ack_lost", lost)), 1, true],
    ["a proven absence", of(opened(2), sent, to("UNKNOWN", "ack_lost"), to("PENDING", "ABSENT")), 0, false],
    [
      "an attempt after a proven absence",
      of(sent, to("UNKNOWN", "ack_lost"), to("PENDING", "ABSENT"), sent, to("PENDING", "not_sent")),
      1,
      false,
    ],
    [
      "more interruptions than a healthy sender has",
      of(
        ...Array.from({ length: 22 }, () => [
          sent,
          to("PENDING", "not_sent", new NotSent("x", { cause: lost })),
        ]).flat(),
      ),
      2,
      false,
    ],
    ["two attempts", of(sent, to("PENDING", "ack_lost"), sent, to("PENDING", "not_sent")), 2, true],
    ["attempts of an obligation", of(sent, owed("ack_lost"), sent, owed("not_sent")), 2, true],
    [
      "an operator's retry",
      of(opened(4), sent, to("UNKNOWN", "ack_lost"), resolvedAs("retry"), to("PENDING", "operator")),
      0,
      true,
    ],
    [
      "an operator's observation request",
      of(opened(4), sent, to("UNKNOWN", "ack_lost"), resolvedAs("observe")),
      5,
      false,
    ],
  ])("%s", (_, history, failures, uncertain) => {
    expect({ failures: history.failures, uncertain: history.uncertain }).toEqual({ failures, uncertain });
  });

  it("counts an effect that was handed over as uncertain", () => {
    expect(attemptHistory([], true)).toEqual({ failures: 0, uncertain: true });
  });
});

it("only the loss of its lease interrupts an attempt, also as the cause of NotSent", () => {
  const codes = ["TAPE_LEASE_LOST", "TAPE_FENCED"] as const;
  for (const code of codes) {
    const lost = new TapeError(code, "x");
    expect([isInterrupted(lost), isInterrupted(new NotSent("x", { cause: lost }))]).toEqual([true, true]);
    expect(isInterrupted(new Error("x", { cause: lost }))).toBe(false);
  }
  expect([new NotSent(), new TapeError("TAPE_TOO_LARGE", "x"), undefined].map(isInterrupted)).toEqual([
    false,
    false,
    false,
  ]);
});
