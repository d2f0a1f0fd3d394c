import { expect, it } from "vitest";
import { createRunner, isTapeError, workflow } from "../../src/exports/index.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { cfo, program, type SampleWorld, sampleOn } from "../types/api-samples.ts";

interface Wired {
  readonly id: string;
  readonly invoice: string;
  readonly token: bigint | undefined;
}

function worldOf(wired: Wired[], reversed: string[] = []): SampleWorld {
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

it("the authors' sample of the design runs: decide, approve, wire by the outbox, sleep for an hour", async () => {
  const wired: Wired[] = [];
  const { treasury, buildRunner } = sampleOn(worldOf(wired));
  await using tape = await VirtualTape.open({ runner: buildRunner() });
  const run = await tape.start(treasury, { day: "2026-11-15" }, { id: "t", budget: { usd: 50 } });
  await tape.elapse(1_000);
  const begun = tape.time.wall();
  await tape.signal(run.id, cfo, { approved: true }, { key: "k" });
  const result = await tape.result(run);
  expect(result).toMatchObject({ receipt: { id: "t:2" }, rate: 1.25 });
  expect("at" in result && result.at !== undefined && result.at - begun).toBeGreaterThanOrEqual(3_600_000);
  expect(wired).toEqual([{ id: "t:2", invoice: "sweep-2026-11-15", token: expect.any(BigInt) }]);
});

it("nobody answers for a day: the same sample does nothing", async () => {
  const wired: Wired[] = [];
  const { treasury, buildRunner } = sampleOn(worldOf(wired));
  await using tape = await VirtualTape.open({ runner: buildRunner() });
  const run = await tape.start(treasury, { day: "2026-11-15" });
  expect(await tape.result(run)).toEqual({ done: false });
  expect(tape.time.now).toBeGreaterThanOrEqual(24 * 3_600_000);
  expect(wired).toEqual([]);
});

it("the sample of an effect outside of a run is the error that the design names", async () => {
  const { wire } = sampleOn(worldOf([]));
  await expect(wire({ account: "a", amount: 1, invoice: "i" })).rejects.toMatchObject({ code: "TAPE_NO_RUN" });
});

it("the programs' sample of the design runs: start, signal, result, cancel, lists, journal, feed", async () => {
  const wired: Wired[] = [];
  const reversed: string[] = [];
  const sample = sampleOn(worldOf(wired, reversed));
  await using tape = await VirtualTape.open({ runner: sample.buildRunner() });
  const saw = await tape.time.during(program(tape.tape, sample));
  expect(saw.result).toMatchObject({ receipt: { id: "treasury-2026-11-15:2" }, rate: 1.25 });
  expect(isTapeError(saw.failure, "TAPE_RUN_FAILED") && saw.failure.details).toMatchObject({ status: "CANCELLED" });
  expect(saw.kinds).toEqual(expect.arrayContaining(["run.created", "decision.made", "gate.opened", "run.ended"]));
  expect(saw.fed).toHaveLength(2);
  expect(saw.run).toMatchObject({ id: "treasury-2026-11-15", status: "COMPLETED" });
  expect(saw.runs.map(({ status }) => status).sort()).toEqual(["CANCELLED", "COMPLETED"]);
  expect(saw.effects).toMatchObject([{ name: "bank.wire", status: "CONFIRMED" }]);
  expect(saw.obligations).toMatchObject([{ status: "DISCHARGED" }]);
  expect([saw.unknown, saw.aged, reversed]).toEqual([[], [], []]);
  expect(saw.timers.map(({ purpose, status }) => `${purpose} ${status}`).sort()).toEqual([
    "gate_timeout CANCELLED",
    "sleep FIRED",
  ]);
  expect(wired).toHaveLength(1);
});

it("what else the design puts on the context runs, and is the same after a wait", async () => {
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
    await tape.sleep("1d"); // it parks, and all of the above is replayed
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
