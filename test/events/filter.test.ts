import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { fnv1a } from "../../src/base/fnv1a.ts";
import { factsOf, holdsValue } from "../../src/events/facts.ts";
import { matcherOf } from "../../src/events/filter.ts";
import { LowWater } from "../../src/events/low-water.ts";
import { wantsOf } from "../../src/events/wants.ts";
import { type JournalRecord, type RecordKind, recordKinds, recordSchemas } from "../../src/model/records.ts";

const record = (kind: string, data: object = {}): JournalRecord =>
  ({ kind, data, journal: 7, seq: 1, token: 1n, at: 5 }) as unknown as JournalRecord;

describe("a filter", () => {
  it("takes an outline by default: starts, ends, gates, what needs attention, and what operators did", () => {
    const { kind } = matcherOf();
    const taken = recordKinds.filter((name) => kind(record(name)));
    expect(taken.toSorted()).toEqual(
      [
        ...["run.created", "run.ended", "run.stuck", "run.unstuck", "run.compensating"],
        ...["gate.opened", "gate.resolved", "operator.action"],
      ].toSorted(),
    );
    expect(kind(record("effect.settled", { to: "UNKNOWN" }))).toBe(true);
    expect(kind(record("effect.settled", { to: "CONFIRMED" }))).toBe(false);
    expect(kind(record("obligation.settled", { to: "STUCK" }))).toBe(true);
  });

  it("takes kinds, groups and sets", () => {
    const { kind } = matcherOf({ kinds: ["step.done", "gate.*", "effects"] });
    expect(
      ["step.done", "gate.opened", "effect.intended", "obligation.armed"].map((name) => kind(record(name))),
    ).toEqual(Array(4).fill(true));
    expect(kind(record("step.failed"))).toBe(false);
    expect(recordKinds.every((name) => matcherOf({ kinds: ["all"] }).kind(record(name)))).toBe(true);
  });

  it("takes what gives work to a reactor, which the event names", () => {
    const { kind } = matcherOf({ kinds: ["wants"] });
    const cases: [kind: RecordKind, data: object, wants: string | undefined][] = [
      ["run.created", {}, "recovery"],
      ["signal.sent", {}, "recovery"],
      ["cancel.requested", {}, "recovery"],
      ["term.ended", { nextReactor: "outbox" }, "outbox"],
      ["term.ended", {}, undefined],
      ["effect.intended", { dispatch: "outbox" }, "outbox"],
      ["effect.intended", { dispatch: "inline" }, undefined],
      ["effect.settled", { to: "UNKNOWN" }, "reconciler"],
      ["effect.settled", { to: "CONFIRMED" }, undefined],
      ["effect.evidence", {}, "reconciler"],
      ["run.compensating", {}, "compensation"],
      ["obligation.due", {}, "compensation"],
      ["timer.set", {}, undefined],
      ["step.done", {}, undefined],
    ];
    for (const [name, data, wants] of cases) {
      const wanted = record(name, data);
      expect([name, wantsOf(wanted), kind(wanted)]).toEqual([name, wants, wants !== undefined]);
    }
  });

  it("compares workflow and labels of the run", () => {
    const { subject } = matcherOf({ workflows: ["order"], labels: { region: "eu" } });
    const run = {
      id: "r",
      workflow: "order",
      version: null,
      labels: { region: "eu", a: "b" },
      root: "r",
      parent: null,
    };
    expect(subject({ journal: 1, kind: "run", run })).toBe(true);
    expect(subject({ journal: 1, kind: "run", run: { ...run, workflow: "x" } })).toBe(false);
    expect(subject({ journal: 1, kind: "run", run: { ...run, labels: {} } })).toBe(false);
    expect(subject({ journal: 1, kind: "name", name: "sweeper" })).toBe(false);
    expect(subject(undefined)).toBe(false);
  });

  it.each([
    [{ kinds: ["run.endet"] }, "did you mean run.ended"],
    [{ kinds: ["rum.*"] }, "did you mean run.*"],
    [{ kinds: [] }, "at least one"],
    [{ kinds: "run.*" as never }, "must be a list"],
    [{ workflows: [5 as never] }, "must be names"],
    [{ kinds: Array(300).fill("all") }, "more than 256"],
  ])("refuses %j", (filter, message) => {
    expect(() => matcherOf(filter)).toThrow(message);
  });
});

describe("facts", () => {
  /** Marks every value of a schema's data, wherever it is. */
  const marked = (schema: z.ZodType): unknown => {
    const { def } = schema as unknown as {
      def: { type: string; shape?: object; innerType?: z.ZodType; element?: z.ZodType };
    };
    if (def.innerType !== undefined) return marked(def.innerType);
    if (def.type === "unknown") return "SECRET";
    if (def.type === "array") return [marked(def.element!)];
    if (def.shape === undefined) return "fact";
    return Object.fromEntries(Object.entries(def.shape).map(([name, field]) => [name, marked(field as z.ZodType)]));
  };

  it.each(recordKinds)("of %s have no value of a user", (kind) => {
    const data = marked(recordSchemas[kind]);
    const facts = factsOf(kind, data);
    expect(JSON.stringify(facts)).not.toContain("SECRET");
    const plain = Object.entries(data as object).filter(([, value]) => value === "fact" && kind !== "decision.made");
    expect(facts).toMatchObject(Object.fromEntries(plain));
  });

  it("know where values are", () => {
    const kinds = recordKinds.filter((kind) => JSON.stringify(marked(recordSchemas[kind])).includes("SECRET"));
    expect(kinds).toEqual(
      expect.arrayContaining(["run.created", "step.done", "effect.intended", "fork.kept", "signal.sent"]),
    );
    expect(kinds.length).toBeGreaterThan(20);
    expect(holdsValue(recordSchemas["run.created"])).toBe(false);
    expect(factsOf("decision.made", { pos: 1, name: "d", rationale: "SECRET", model: "m" })).toEqual({
      pos: 1,
      name: "d",
      model: "m",
    });
  });
});

describe("the low-water mark", () => {
  const mark = (at: number) => ({ cursor: `c${at}`, at });

  it("moves only over what is settled, in any order", () => {
    const water = new LowWater(mark(0));
    water.pass(mark(1));
    expect(water.mark).toEqual(mark(1));
    const [a, b, c] = [water.add(mark(2)), water.add(mark(3)), water.add(mark(4))];
    water.settle(c);
    water.settle(b);
    expect([water.mark, water.oldestAt]).toEqual([mark(1), 2]);
    water.settle(a);
    expect([water.mark, water.oldestAt]).toEqual([mark(4), undefined]);
  });

  it("passes filtered records with the event before them", () => {
    const water = new LowWater(mark(0));
    const [a, b] = [water.add(mark(1)), undefined];
    water.pass(mark(2));
    const later = water.add(mark(3));
    water.pass(mark(4));
    expect([water.mark.cursor, b]).toEqual(["c0", undefined]);
    water.settle(a);
    expect(water.mark.cursor).toBe("c2");
    water.settle(later);
    expect(water.mark.cursor).toBe("c4");
  });

  it("stays exact over many events", () => {
    const water = new LowWater(mark(0));
    const events = Array.from({ length: 5_000 }, (_, k) => water.add(mark(k + 1)));
    for (const [k, event] of events.entries()) if (k !== 2_500) water.settle(event);
    expect(water.mark.cursor).toBe("c2500");
    water.settle(events[2_500]!);
    expect(water.mark.cursor).toBe("c5000");
  });
});

it("the hash of a lane never changes", () => {
  expect(["", "a", "foobar", "größe"].map(fnv1a)).toEqual([0x811c9dc5, 0xe40c292c, 0xbf9cf968, fnv1a("größe")]);
});
