import { expect, it } from "vitest";
import { createRunner, isTapeError, workflow } from "../../src/exports/index.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { cfo, program, type SampleWorld, sampleOn } from "../types/api-samples.ts";

interface WireCall {
  readonly id: string;
  readonly invoice: string;
  readonly token: bigint | undefined;
}

function worldOf(wired: WireCall[], reversed: string[] = []): SampleWorld {
  return {
    bank: {
      async wire({ invoice }, { idempotencyKey, fencingToken }) {
        wired.push({ id: idempotencyKey, invoice, token: fencingToken });
        return { id: idempotencyKey };
      },
      find: async (businessKey) => wired.find(({ invoice }) => invoice === businessKey),
      reverse: async (id) => void reversed.push(id),
    },
    model: { plan: async () => ({ plan: { account: "a", amount: 5 }, usage: { tokens: 7 }, why: "because" }) },
    fetchRate: async () => 1.25,
  };
}

it("runs the sample: decide, approve, wire through the outbox, sleep", async () => {
  const wired: WireCall[] = [];
  const { treasury, buildRunner } = sampleOn(worldOf(wired));
  await using tape = await VirtualTape.open({ runner: buildRunner() });
  const run = await tape.start(treasury, { day: "2026-11-15" }, { id: "t", budget: { usd: 50 } });
  await tape.elapse(1_000);
  const startedAt = tape.time.wall();
  await tape.signal(run.id, cfo, { approved: true }, { key: "k" });
  const result = await tape.result(run);
  expect(result).toMatchObject({ receipt: { id: "t:2" }, rate: 1.25 });
  expect("at" in result && result.at !== undefined && result.at - startedAt).toBeGreaterThanOrEqual(3_600_000);
  expect(wired).toEqual([{ id: "t:2", invoice: "sweep-2026-11-15", token: expect.any(BigInt) }]);
});

it("does nothing when no approval comes within a day", async () => {
  const wired: WireCall[] = [];
  const { treasury, buildRunner } = sampleOn(worldOf(wired));
  await using tape = await VirtualTape.open({ runner: buildRunner() });
  const run = await tape.start(treasury, { day: "2026-11-15" });
  expect(await tape.result(run)).toEqual({ done: false });
  expect(tape.time.now).toBeGreaterThanOrEqual(24 * 3_600_000);
  expect(wired).toEqual([]);
});

it("rejects an effect outside a run", async () => {
  const { wire } = sampleOn(worldOf([]));
  await expect(wire({ account: "a", amount: 1, invoice: "i" })).rejects.toMatchObject({ code: "TAPE_NO_RUN" });
});

it("runs the program sample: start, signal, cancel, lists, journal, feed", async () => {
  const wired: WireCall[] = [];
  const reversed: string[] = [];
  const sample = sampleOn(worldOf(wired, reversed));
  await using tape = await VirtualTape.open({ runner: sample.buildRunner() });
  const output = await tape.time.during(program(tape.tape, sample));
  expect(output.result).toMatchObject({ receipt: { id: "treasury-2026-11-15:2" }, rate: 1.25 });
  expect(isTapeError(output.failure, "TAPE_RUN_FAILED") && output.failure.details).toMatchObject({
    status: "CANCELLED",
  });
  expect(output.kinds).toEqual(expect.arrayContaining(["run.created", "decision.made", "gate.opened", "run.ended"]));
  expect(output.fed).toHaveLength(2);
  expect(output.run).toMatchObject({ id: "treasury-2026-11-15", status: "COMPLETED" });
  expect(output.runs.map(({ status }) => status).sort()).toEqual(["CANCELLED", "COMPLETED"]);
  expect(output.effects).toMatchObject([{ name: "bank.wire", status: "CONFIRMED" }]);
  expect(output.obligations).toMatchObject([{ status: "DISCHARGED" }]);
  expect([output.unknown, output.aged, reversed]).toEqual([[], [], []]);
  expect(output.timers.map(({ purpose, status }) => `${purpose} ${status}`).sort()).toEqual([
    "gate_timeout CANCELLED",
    "sleep FIRED",
  ]);
  expect(wired).toHaveLength(1);
});

it("replays every other context operation with the same results", async () => {
  const seen: unknown[] = [];
  const child = workflow("child", async (_tape, n: number) => n + 1);
  const all = workflow("all", async (tape, n: number) => {
    const random = [tape.random(), tape.uuid(), tape.now(), await tape.sample("coin", () => seen.length === 0)];
    const kid = await tape.spawn(child, n);
    const raced = await tape.race([kid.result(), tape.sleep("1h").then(() => "late")]);
    const some = await tape.any([tape.step("bad", () => Promise.reject(new Error("no"))), tape.step("good", () => 7)]);
    const version = await tape.values.put("k", n, 0);
    const value = await tape.values.get("k");
    const cost = await tape.budget.spend({ usd: 2 }, async () => ({ cost: { usd: 1 }, value: "spent" }));
    tape.progress("half of it");
    tape.log("half of it");
    const patched = tape.patched("newer");
    const both = await Promise.all([tape.step("x", () => 1), tape.step("y", () => 2)]);
    seen.push([random, tape.fence.token > 0n, tape.abortSignal.aborted]);
    await tape.sleep("1d"); // the run parks, and all of the above is replayed
    return { raced, some, version, value, cost, patched, both };
  });
  await using tape = await VirtualTape.open({ runner: createRunner({ workflows: [all, child] }) });
  const run = await tape.start(all, 1, { budget: { usd: 3 } });
  expect(await tape.result(run)).toEqual({
    raced: 2,
    some: 7,
    version: 1,
    value: { version: 1, value: 1 },
    cost: "spent",
    patched: true,
    both: [1, 2],
  });
  expect(seen.length).toBeGreaterThan(1);
  expect(new Set(seen.map((each) => JSON.stringify(each))).size).toBe(1);
  expect(seen[0]).toEqual([[expect.any(Number), expect.any(String), expect.any(Number), true], true, false]);
});
