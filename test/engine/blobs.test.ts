import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { fork } from "../../src/operator/fork.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import { withBlobs } from "../../src/store/blob-store.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { openBlank } from "../blank-database.ts";
import { type Stage, stage, tenant } from "./stage.ts";

const flow = (run: (tape: TapeContext) => unknown): AnyWorkflow =>
  workflow("flow", run as never) as unknown as AnyWorkflow;
const go = gate<string>("go");
const image = (seed: number): Uint8Array => Buffer.alloc(5 * 1024 * 1024, `tree ${seed} `);

async function blobStage(limits?: object): Promise<Stage> {
  const clock = new ManualClock();
  const opened = { clock, random: seededRandom("store"), open: openBlank, ...(limits && { limits }) };
  return stage({ clock, store: withBlobs(await openStore("memory:", opened)) });
}

describe("a decision of 5 MiB", () => {
  it("is paid once, also if its process crashes, and each replay gets it whole", async () => {
    const s = await blobStage();
    let paid = 0;
    const seen: boolean[] = [];
    const draw = flow(async (tape) => {
      const drawn = await tape.decide("draw", ({ record }) => {
        paid++;
        record({ request: { prompt: "a tree", seen: "x".repeat(100_000) } });
        return { text: "a tree", image: image(7) };
      });
      seen.push(Buffer.compare(drawn.image, image(7)) === 0);
      await tape.gate(go);
      return drawn.text;
    });
    const first = s.process([draw]);
    const id = await first.start(draw);
    await first.until(async () => (await s.run(id)).status === "WAITING");
    first.crash();
    await s.store.intake.signal(tenant, id, { name: "go", value: "on" });
    const run = await s.process([draw]).over(id);
    expect([run.status, run.outcome, paid, seen]).toEqual(["COMPLETED", "a tree", 1, [true, true]]);
    const made = (await s.records(id)).find(({ kind }) => kind === "decision.made");
    expect(made?.data).toMatchObject({ request: { prompt: "a tree", seen: "x".repeat(100_000) } });
  });

  it("a fork keeps it under its own journal, and outlives the first run", async () => {
    const s = await blobStage();
    let paid = 0;
    const draw = flow(async (tape) => {
      const drawn = await tape.decide("draw", () => {
        paid++;
        return image(5);
      });
      await tape.step("look", () => "seen");
      return drawn.byteLength;
    });
    const p = s.process([draw]);
    const id = await p.start(draw);
    await p.over(id);
    const deps = { store: p.store, keeper: p.keeper, tenant, clock: s.clock, random: seededRandom("fork") };
    await fork(deps, id, { by: "ada", reason: "again", id: "copy", at: 1 });
    expect(await s.store.intake.prune(tenant, s.clock.wall() + 1, 10)).toBeGreaterThan(0);
    const copy = await p.over("copy");
    expect([copy.status, copy.outcome, paid]).toEqual(["COMPLETED", 5 * 1024 * 1024, 1]);
  });

  it("beyond the limit of a blob the step fails with TAPE_TOO_LARGE, and the run continues", async () => {
    const s = await blobStage({ blobBytes: 1_000_000 });
    const draw = flow(async (tape) => {
      const failed = await tape.decide("draw", () => image(3)).catch((error: unknown) => error);
      return (failed as { code: string }).code;
    });
    const p = s.process([draw]);
    const run = await p.over(await p.start(draw));
    expect([run.status, run.outcome]).toEqual(["COMPLETED", "TAPE_TOO_LARGE"]);
  });

  it("a blob that was changed in the database makes the run STUCK and reaches no code", async () => {
    const clock = new ManualClock();
    const bare = await openStore("memory:", { clock, random: seededRandom("store"), open: openBlank });
    const s = await stage({ clock, store: withBlobs(bare) });
    const seen: number[] = [];
    const draw = flow(async (tape) => {
      seen.push((await tape.decide("draw", () => "x".repeat(100_000))).length);
      await tape.gate(go);
    });
    const first = s.process([draw]);
    const id = await first.start(draw);
    await first.until(async () => (await s.run(id)).status === "WAITING");
    first.crash();
    await s.store.intake.signal(tenant, id, { name: "go", value: "on" });
    const { read } = bare;
    const blob = async (...args: Parameters<typeof read.blob>) => {
      const chunk = await read.blob(...args);
      return chunk && { ...chunk, text: chunk.text.replace("x", "y") };
    };
    const run = await s.process([draw], { store: withBlobs({ ...bare, read: { ...read, blob } }) }).over(id);
    expect([run.status, seen]).toEqual(["STUCK", [100_000]]);
    const stuck = (await bare.read.journal(tenant, { run: id })).find(({ kind }) => kind === "run.stuck");
    expect(stuck?.data).toMatchObject({ reason: expect.stringMatching(/TAPE_JOURNAL_DAMAGED: blob .+ has changed/) });
  });
});
