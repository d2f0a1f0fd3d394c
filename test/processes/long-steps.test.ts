import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { Child } from "./child-process.ts";

const ttlMs = 4_000;
const total = 12;

interface StartedBody {
  readonly label: string;
  readonly n: number;
  readonly at: number;
}

it("resumes 12 runs with 60 s steps within two lease times after two kills", {
  timeout: 90_000,
}, async (test: TestContext) => {
  const { expect } = test;
  const folder = await mkdtemp(join(tmpdir(), "tape-long-"));
  test.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const ledger = join(folder, "ledger");
  const startedBy = (label: string): StartedBody[] => {
    const lines = existsSync(ledger) ? readFileSync(ledger, "utf8").split("\n").slice(0, -1) : [];
    return lines.map((line) => JSON.parse(line) as StartedBody).filter((body) => body.label === label);
  };
  const launch = async (label: string, start: number): Promise<Child> => {
    const args = [`sqlite:${join(folder, "tape.db")}`, ledger, String(ttlMs), String(start), label];
    const child = new Child(label, args, test, "long-worker.ts");
    await child.receive();
    return child;
  };
  const untilStarted = async (label: string, count: number): Promise<void> => {
    while (new Set(startedBy(label).map(({ n }) => n)).size < count) await systemClock.sleep(50);
  };
  const first = await launch("a", total);
  await untilStarted("a", total);
  first.kill();
  const second = await launch("b", 0);
  await untilStarted("b", total);
  second.kill();
  const third = await launch("c", 0);
  await untilStarted("c", 1);
  // An innocent new run starts at once, while the others are still being recovered.
  const reply = (await third.request({} as never)) as unknown as { readonly ms: number };
  expect(reply.ms).toBeLessThan(ttlMs / 2);
  expect(startedBy("c").length).toBeLessThan(total);
  await untilStarted("c", total);
  const startTimes = startedBy("c").map(({ at }) => at);
  expect(Math.max(...startTimes) - Math.min(...startTimes)).toBeLessThan(2 * ttlMs);
});
