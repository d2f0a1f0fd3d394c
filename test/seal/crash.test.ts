import { expect, it } from "vitest";
import { toJson } from "../../src/base/codec.ts";
import { openStore } from "../../src/host/open-store.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { sealedStore } from "../../src/seal/sealed-store.ts";
import { crashAtEveryBoundary, WorldLedger } from "../../testkit/index.ts";
import { openBlank } from "../blank-database.ts";
import { testCodec } from "./codec.ts";

const everyBoundary = process.env.TAPE_TEST_EVERY_BOUNDARY === "1";

it("a run with encrypted payloads survives a crash and a zombie at every boundary", async () => {
  const ledger = new WorldLedger();
  const go = gate<string>("go");
  const wire = effect("wire", (a: { to: string }, fx) => ledger.apply("wire", fx, a, () => "done"), {
    businessKey: (a) => a.to,
    timeout: "1s",
    settleDelay: "1m",
    observe: (a) => {
      const seen = ledger.find("wire", a.to);
      return seen ? outcome.confirmed(seen.result as string) : outcome.absent();
    },
  });
  const child = workflow("child", (tape, name: string) => tape.step("spell", () => `${name}!`));
  const flow = workflow("flow", async (tape, name: string) => {
    const spelled = await tape.call(child, name);
    const answer = await tape.gate(go, { payload: { name } });
    await wire({ to: spelled });
    return [spelled, answer.status === "received" ? answer.value : "", tape.uuid()];
  });
  const runner = createRunner({ workflows: [flow, child], effects: [wire] });
  const { rounds, reached, statuses } = await crashAtEveryBoundary({
    ...{ workflow: flow, input: "canary-7f3a", runner, ledger },
    signals: [{ gate: go, value: "canary-8f3a" }],
    outcome: (all) => (all as unknown[]).slice(0, 2),
    openStore: async (clock, random) =>
      sealedStore(await openStore("memory:", { clock, random, open: openBlank }), { codec: testCodec({ random }) }),
    only: (_boundary, index) => everyBoundary || index % 5 === 0,
    check: async ({ store }) => {
      const { records } = await store.read.feed(undefined, 1_000); // of all tenants: as the store has it
      const text = JSON.stringify(records.map(({ data }) => toJson(data)));
      expect(text).toContain('"sealed"');
      expect(text).not.toMatch(/canary/);
    },
  });
  expect(rounds).toBeGreaterThan(15);
  expect(reached).toBe(rounds);
  expect(Object.keys(statuses)).toEqual(["COMPLETED"]);
});
