import { describe, expect } from "vitest";
import { decode } from "../../src/base/codec.ts";
import { functionConnector } from "../../src/connector/function.ts";
import { type Effect, effect, type Semantics } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { onBothStores } from "../kit/both-stores.ts";

const both = onBothStores({ payloadBytes: 64 * 1024, blobBytes: 66 * 1024 });

const hostile = (): never => {
  throw new Error("unreadable");
};
const cycle: Record<string, unknown> = {};
cycle.self = cycle;
cycle.again = cycle;
const deep = (): unknown => {
  let value: unknown = 1;
  for (let k = 0; k < 300; k++) value = [value];
  return value;
};
class Account {
  balance = 1;
  pay() {}
}

/** What a body may return and no record can hold, and the code of the run's error. */
const unstorable: Readonly<Record<string, readonly [make: () => unknown, code: string]>> = {
  "a function": [() => ({ f: () => 1 }), "TAPE_NOT_ENCODABLE"],
  "a symbol": [() => [Symbol("x")], "TAPE_NOT_ENCODABLE"],
  "a cycle": [() => cycle, "TAPE_NOT_ENCODABLE"],
  "a cycle beside a long text": [() => ({ cycle, text: "x".repeat(70_000) }), "TAPE_NOT_ENCODABLE"],
  "an instance with methods": [() => new Account(), "TAPE_NOT_ENCODABLE"],
  "a response": [() => new Response("x"), "TAPE_NOT_ENCODABLE"],
  "a promise inside": [() => ({ p: Promise.resolve(1) }), "TAPE_NOT_ENCODABLE"],
  "too much": [() => "x".repeat(70_000), "TAPE_TOO_LARGE"],
  "too deep": [deep, "TAPE_NOT_ENCODABLE"],
  "a buffer": [() => new ArrayBuffer(8), "TAPE_NOT_ENCODABLE"],
  "a getter that throws": [
    () => Object.defineProperty({}, "a", { enumerable: true, get: hostile }),
    "TAPE_NOT_ENCODABLE",
  ],
  "a proxy that throws": [() => new Proxy({}, { ownKeys: hostile }), "TAPE_NOT_ENCODABLE"],
};
const semanticses: readonly Semantics[] = ["non_idempotent", "idempotent", "read"];
const ways = ["inline", "outbox", "connector"] as const;

describe("an effect whose result cannot be stored", () => {
  both("is confirmed once and owed, and the run gets the error, on every path", async (open) => {
    const sent = new Map<string, number>();
    const compensated: string[] = [];
    const perform = (key: string): unknown => {
      sent.set(key, (sent.get(key) ?? 0) + 1);
      return unstorable[key.split("|")[2]!]![0]();
    };
    const compensate = (key: string, result: unknown): void => void compensated.push(`${key} ${String(result)}`);
    const effects = new Map<string, (key: string) => Promise<unknown>>();
    for (const way of ways) {
      for (const semantics of semanticses) {
        const name = `${way}|${semantics}`;
        const options = { semantics, compensate, retry: { attempts: 3, base: 10 } } as const;
        effects.set(
          name,
          way === "connector"
            ? effect<string, unknown>(name, { ...options, connector: "world" })
            : effect<string, unknown>(name, perform, { ...options, dispatch: way }),
        );
      }
    }
    const world = functionConnector("world", { dispatch: perform });
    const caller = workflow("caller", async (_tape, key: string) => {
      const [way, semantics] = key.split("|");
      await effects.get(`${way}|${semantics}`)!(key);
    });
    const registered = [...effects.values()] as unknown as Effect<string, unknown>[];
    const t = await open(createRunner({ workflows: [caller], effects: registered, connectors: [world] }));
    const keys = ways.flatMap((way) =>
      semanticses.flatMap((s) => Object.keys(unstorable).map((v) => `${way}|${s}|${v}`)),
    );
    for (const key of keys) await t.start(caller, key, { id: key });
    for (const run of await t.settle()) expect([run.id, run.status]).toEqual([run.id, "COMPENSATED"]);
    for (const key of keys) {
      const { outcome } = (await t.time.during(t.store.read.run("default", key)))!;
      expect([key, outcome]).toMatchObject([key, { code: unstorable[key.split("|")[2]!]![1] }]);
      const [row, compensation] = await t.time.during(t.store.read.effects("default", { run: key }));
      expect([key, row!.status, row!.attempt]).toEqual([key, "CONFIRMED", 1]);
      expect(decode(row!.outcome!)).toMatchObject({ error: { code: unstorable[key.split("|")[2]!]![1] } });
      expect([key, compensation!.status]).toEqual([key, "COMPENSATED"]);
    }
    expect([...sent]).toEqual(expect.arrayContaining(keys.map((key) => [key, 1])));
    expect(compensated.toSorted()).toEqual(keys.map((key) => `${key} undefined`).toSorted());
  });

  both("is compensated once if the result of its compensation cannot be stored", async (open) => {
    let compensated = 0;
    const book = effect("book", () => 1, {
      compensate: () => {
        compensated++;
        return () => {};
      },
    });
    const fails = workflow("fails", async () => {
      await book(null);
      throw new Error("on purpose");
    });
    const t = await open(createRunner({ workflows: [fails], effects: [book] }));
    await t.start(fails, undefined, { id: "r" });
    expect(await t.settle()).toMatchObject([{ status: "COMPENSATED" }]);
    expect(compensated).toBe(1);
  });
});

describe("a value that cannot be stored fails the run with its code, without a retry", () => {
  const calls = new Map<string, number>();
  const made = (key: string): unknown => {
    calls.set(key, (calls.get(key) ?? 0) + 1);
    return unstorable[key.split("|")[1]!]![0]();
  };
  const step = workflow("step", (tape, key: string) => tape.step("s", () => made(key)));
  const decide = workflow("decide", (tape, key: string) => tape.decide("d", () => made(key)));
  const notes = workflow("notes", (tape, key: string) =>
    tape.decide("d", (decision) => decision.record({ response: made(key) })),
  );
  const sample = workflow("sample", (tape, key: string) => tape.sample("x", () => made(key)));
  const outcome = workflow("outcome", (_tape, key: string) => ({ made: made(key) }));
  const throws = workflow("throws", (tape, key: string) =>
    tape.step("s", () => {
      made(key);
      throw new Proxy(new Error("x"), { get: hostile, getPrototypeOf: hostile });
    }),
  );
  const all = [step, decide, notes, sample, outcome, throws];

  both("from a step, a decision, a sample, an outcome", async (open) => {
    calls.clear();
    const t = await open(createRunner({ workflows: all }));
    const keys = all.flatMap(({ name }) => Object.keys(unstorable).map((value) => `${name}|${value}`));
    for (const key of keys) await t.start(all.find(({ name }) => key.startsWith(name))!, key, { id: key });
    await t.settle();
    for (const key of keys) {
      const run = (await t.time.during(t.store.read.run("default", key)))!;
      const [of, value] = key.split("|") as [string, string];
      const why =
        of === "throws" ? { message: expect.stringContaining("cannot be shown") } : { code: unstorable[value]![1] };
      expect([key, run.status, run.outcome]).toMatchObject([key, "FAILED", why]);
      expect([key, calls.get(key)]).toEqual([key, 1]);
    }
  });
});
