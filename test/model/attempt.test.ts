import { describe, expect, it } from "vitest";
import {
  type AttemptFacts,
  attemptHistory,
  type FailedCall,
  isInterrupted,
  type Semantics,
  verdictOf,
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
const said = (result: FailedCall, own: Parameters<typeof facts>[0]): string => {
  const { to, reason } = verdictOf(result, facts(own));
  return `${to} ${reason}`;
};

/** What the last attempt of the policy came to, and one before it; no earlier one in doubt, and one in doubt. */
type Row = readonly [fresh: string, freshLast: string, doubted: string, doubtedLast: string];
const no = "FAILED definite";
const [unsent, unsentLast] = ["PENDING not_sent", "FAILED not_sent"];
const [again, given] = ["PENDING ack_lost", "UNKNOWN ack_lost"];
const worn = "FAILED exhausted";
const table: Readonly<Record<string, Row>> = {
  "non_idempotent, refused for good": [no, no, no, no],
  "non_idempotent, refused this time": [no, no, given, given],
  "non_idempotent, not_sent": [unsent, unsentLast, unsent, given],
  "non_idempotent, unknown": [given, given, given, given],
  "idempotent, refused for good": [no, no, no, no],
  "idempotent, refused this time": [no, no, again, given],
  "idempotent, not_sent": [unsent, unsentLast, unsent, given],
  "idempotent, unknown": [again, given, again, given],
  "read, refused for good": [no, no, no, no],
  "read, refused this time": [no, no, again, worn],
  "read, not_sent": [unsent, unsentLast, unsent, unsentLast],
  "read, unknown": [again, worn, again, worn],
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
    const [fresh, freshLast, doubted, doubtedLast] = table[name]!;
    const own = { semantics, settlesEarlier };
    expect(said(result, { ...own, failures: 0 })).toBe(fresh);
    expect(said(result, { ...own, failures: 1 })).toBe(fresh);
    expect(said(result, { ...own, failures: 2 })).toBe(freshLast);
    expect(said(result, { ...own, failures: 9 })).toBe(freshLast);
    expect(said(result, { ...own, failures: 1, uncertain: true })).toBe(doubted);
    expect(said(result, { ...own, failures: 2, uncertain: true })).toBe(doubtedLast);
  });

  it.each([...cases()])("cut short, it is not charged: $name", ({ name, result, semantics, settlesEarlier }) => {
    const [fresh, freshLast, doubted, doubtedLast] = table[name]!;
    const own = { semantics, settlesEarlier, interrupted: true };
    expect(said(result, { ...own, failures: 2 })).toBe(fresh);
    expect(said(result, { ...own, failures: 3 })).toBe(freshLast);
    expect(said(result, { ...own, failures: 2, uncertain: true })).toBe(doubted);
    expect(said(result, { ...own, failures: 3, uncertain: true })).toBe(doubtedLast);
  });

  it("an idempotent effect that may have happened is handed over early; nothing else is", () => {
    const own = { attempts: 9, handOverAfter: 3 };
    for (const { name, result, semantics, settlesEarlier } of cases()) {
      const at = (failures: number, uncertain: boolean) =>
        said(result, { ...own, semantics, settlesEarlier, failures, uncertain });
      const [fresh, , doubted] = table[name]!;
      expect([name, at(1, false), at(1, true)]).toEqual([name, fresh, doubted]);
      const early = semantics === "idempotent";
      expect([name, at(2, false)]).toEqual([name, early && result === "unknown" ? given : fresh]);
      expect([name, at(2, true)]).toEqual([name, early && doubted.startsWith("PENDING") ? given : doubted]);
    }
    expect(said("unknown", { attempts: 2, handOverAfter: 3, failures: 1 })).toBe(given);
  });

  it.each(["returned", "unstorable"] as const)(
    "%s: it happened, whatever came before and whatever can be kept",
    (r) => {
      expect(verdictOf(r)).toEqual({ to: "CONFIRMED", reason: "returned" });
    },
  );

  it("leaves to the next attempt what it has cost and what it has left open", () => {
    for (const interrupted of both) {
      for (const uncertain of both) {
        for (const result of ["not_sent", "unknown"] as const) {
          const { to, history } = verdictOf(result, facts({ failures: 1, uncertain, interrupted }));
          expect(to).toBe("PENDING");
          expect(history).toEqual({ failures: interrupted ? 1 : 2, uncertain: uncertain || result === "unknown" });
        }
      }
    }
  });

  it("breaks no promise in any combination", () => {
    let judged = 0;
    for (const { result, semantics, settlesEarlier } of cases()) {
      for (const interrupted of both) {
        for (const uncertain of both) {
          for (const handOverAfter of [undefined, 1, 2]) {
            for (let failures = 0; failures < 5; failures++) {
              for (let most = 0; most < 5; most++) {
                const history = { failures, uncertain };
                const own = { semantics, settlesEarlier, interrupted, attempts: most, history };
                const given = handOverAfter === undefined ? own : { ...own, handOverAfter };
                const { to, reason, history: left } = verdictOf(result, given);
                const about = JSON.stringify({ result, ...given, to, reason });
                const mayHaveHappened = result === "unknown" || (uncertain && !settlesEarlier);
                if (to === "FAILED") expect(semantics === "read" || !mayHaveHappened, about).toBe(true);
                if (to === "UNKNOWN") expect(semantics !== "read" && mayHaveHappened, about).toBe(true);
                if (to === "PENDING") {
                  expect(semantics !== "non_idempotent" || result === "not_sent", about).toBe(true);
                  expect(left.failures < most, about).toBe(true);
                }
                // What is known to be refused is not sent again.
                if (settlesEarlier) expect(`${to} ${reason}`, about).toBe(no);
                expect(left.failures - failures, about).toBe(interrupted ? 0 : 1);
                expect(left.uncertain, about).toBe(uncertain || result === "unknown");
                judged++;
              }
            }
          }
        }
      }
    }
    expect(judged).toBe(12 * 2 * 2 * 3 * 25);
  });
});

it.each([
  ["non_idempotent", "UNKNOWN"],
  ["idempotent", "PENDING"],
  ["read", "PENDING"],
] as const)(
  "a sender that vanished in mid-call leaves a %s effect %s; UNKNOWN, if it takes down every sender",
  (s, to) => {
    expect(verdictOnCrash(s)).toEqual({ to, reason: "lease_lost" });
    expect(verdictOnCrash(s, true)).toEqual({ to: "UNKNOWN", reason: "lease_lost" });
  },
);

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
  const acted = (as: string): NewRecord => ({
    kind: "operator.action",
    data: { action: "resolve", actor: "a", reason: "r", detail: { as } } as never,
  });
  const of = (...records: NewRecord[]) => attemptHistory(records, false);

  it.each<readonly [name: string, history: ReturnType<typeof of>, failures: number, uncertain: boolean]>([
    ["nothing", of(), 0, false],
    ["not even sent", of(opened(), sent, to("PENDING", "not_sent")), 1, false],
    ["an answer lost", of(opened(), sent, to("PENDING", "ack_lost")), 1, true],
    ["a crash", of(opened(), sent, to("PENDING", "lease_lost")), 0, true],
    ["a drain before it was sent", of(sent, to("PENDING", "not_sent", new NotSent("x", { cause: lost }))), 0, false],
    ["what inline attempts had cost", of(opened(4), sent, to("PENDING", "ack_lost")), 5, true],
    ["one attempt, settled twice", of(sent, to("UNKNOWN", "ack_lost"), to("PENDING", "not_sent")), 1, false],
    ["one that was looked for", of(sent, to("UNKNOWN", "ack_lost"), to("PENDING", "absent")), 1, true],
    ["two", of(sent, to("PENDING", "ack_lost"), sent, to("PENDING", "not_sent")), 2, true],
    ["of what is owed", of(sent, owed("ack_lost"), sent, owed("not_sent")), 2, true],
    [
      "an operator's retry",
      of(opened(4), sent, to("UNKNOWN", "ack_lost"), acted("retry"), to("PENDING", "operator")),
      0,
      true,
    ],
    ["an operator's look", of(opened(4), sent, to("UNKNOWN", "ack_lost"), acted("observe")), 5, false],
  ])("%s", (_, history, failures, uncertain) => {
    expect(history).toEqual({ failures, uncertain });
  });

  it("an effect that was handed over may have happened", () => {
    expect(attemptHistory([], true)).toEqual({ failures: 0, uncertain: true });
  });
});

it("an attempt is interrupted by the loss of its lease alone, also where that is only the cause", () => {
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
