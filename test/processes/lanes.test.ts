import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Child } from "./child-process.ts";

const ttlMs = 1_500;
const total = 95;
const tenant = "default";

it("no result is swapped and no run is stuck when 95 runs with two branches are killed three times", {
  timeout: 90_000,
}, async (test: TestContext) => {
  const { expect } = test;
  const folder = await mkdtemp(join(tmpdir(), "tape-lanes-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url);
  test.onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  const runs = () => store.read.runs(tenant, { limit: 1_000 });
  const decisions = async (): Promise<number> => {
    const journals = await Promise.all(
      Array.from({ length: total }, (_, n) => store.read.journal(tenant, { run: `both-${n}` })),
    );
    return journals.flat().filter(({ kind }) => kind === "decision.made").length;
  };
  const interrupted: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    const child = new Child(
      `process ${attempt}`,
      [url, String(ttlMs), String(attempt === 0 ? total : 0), String(attempt)],
      test,
      "lanes-worker.ts",
    );
    await child.receive();
    const before = await decisions();
    // Each process is killed when all runs have started and none has ended.
    const enough = total * 2 * 12 * ((attempt + 1) / 5);
    if (attempt < 3) {
      while ((await decisions()) < Math.max(before + 1, enough)) await systemClock.sleep(20);
      child.kill();
      interrupted.push((await runs()).filter(({ endedAt }) => endedAt === null).length);
    } else
      while ((await runs()).some(({ endedAt, status }) => endedAt === null && status !== "STUCK"))
        await systemClock.sleep(50);
  }
  const turns = Array.from({ length: 12 }, (_, turn) => turn);
  const expected = ["a", "b"].map((name) => turns.map((turn) => `${name} ${turn}`));
  const found = (await runs()).map(({ id, status, outcome }) => [id, status, outcome]);
  for (const [id, ...rest] of found) expect([id, ...rest]).toEqual([id, "COMPLETED", expected]);
  expect(found).toHaveLength(total);
  expect(interrupted.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(200);
});
