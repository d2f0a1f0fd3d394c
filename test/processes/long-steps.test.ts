import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { Actor } from "./actor.ts";

const ttlMs = 4_000;
const total = 12;

interface Begun {
  readonly label: string;
  readonly n: number;
  readonly at: number;
}

it("12 runs with 60 s steps whose process was killed twice are all at work again within two lease times", {
  timeout: 90_000,
}, async (test: TestContext) => {
  const { expect } = test;
  const folder = await mkdtemp(join(tmpdir(), "tape-long-"));
  test.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const ledger = join(folder, "ledger");
  const begunBy = (label: string): Begun[] => {
    const lines = existsSync(ledger) ? readFileSync(ledger, "utf8").split("\n").slice(0, -1) : [];
    return lines.map((line) => JSON.parse(line) as Begun).filter((one) => one.label === label);
  };
  const launch = async (label: string, start: number): Promise<Actor> => {
    const args = [`sqlite:${join(folder, "tape.db")}`, ledger, String(ttlMs), String(start), label];
    const actor = new Actor(label, args, test, "long-worker.ts");
    await actor.hear();
    return actor;
  };
  const atWork = async (label: string, count: number): Promise<void> => {
    while (new Set(begunBy(label).map(({ n }) => n)).size < count) await systemClock.sleep(50);
  };
  const first = await launch("a", total);
  await atWork("a", total);
  first.kill();
  const second = await launch("b", 0);
  await atWork("b", total);
  second.kill();
  const third = await launch("c", 0);
  await atWork("c", 1);
  // An innocent new run begins at once, while the others are still on their way back.
  const answer = (await third.ask({} as never)) as unknown as { readonly ms: number };
  expect(answer.ms).toBeLessThan(ttlMs / 2);
  expect(begunBy("c").length).toBeLessThan(total);
  await atWork("c", total);
  const began = begunBy("c").map(({ at }) => at);
  expect(Math.max(...began) - Math.min(...began)).toBeLessThan(2 * ttlMs);
});
