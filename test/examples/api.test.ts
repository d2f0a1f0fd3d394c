import { expect, it } from "vitest";
import { VirtualTape } from "../../src/testing/kit/virtual-tape.ts";
import { cfo, sampleOn } from "../types/api-samples.ts";

it("the authors' sample of the design runs: decide, approve, wire by the outbox, sleep for an hour", async () => {
  const wired: { id: string; invoice: string; token: bigint | undefined }[] = [];
  const { treasury, buildRunner } = sampleOn({
    bank: {
      async wire({ invoice }, { idempotencyKey, fencingToken }) {
        wired.push({ id: idempotencyKey, invoice, token: fencingToken });
        return { id: idempotencyKey };
      },
      find: async (businessKey) => wired.find(({ invoice }) => invoice === businessKey),
      reverse: async () => {},
    },
    model: { plan: async () => ({ plan: { account: "a", amount: 5 }, usage: { tokens: 7 }, why: "because" }) },
    fetchRate: async () => 1.25,
  });
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
