import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { Child } from "./child-process.ts";

const tenant = "default";
const ttlMs = 1_500;
const maxStallMs = 1_000;

interface Line {
  readonly what: string;
  readonly label: string;
  readonly at: number;
  readonly attempt?: number;
}

async function setUp(test: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "tape-steps-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url);
  test.onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  const ledger = join(folder, "ledger");
  const lines = (): Line[] =>
    existsSync(ledger)
      ? readFileSync(ledger, "utf8")
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line) as Line)
      : [];
  const launch = async (label: string, start = ""): Promise<Child> => {
    const args = [url, ledger, String(ttlMs), String(maxStallMs), start, label];
    const child = new Child(label, args, test, "steps-worker.ts");
    await child.receive();
    return child;
  };
  return { store, lines, launch };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await systemClock.sleep(25);
}

const completed = async (store: Store): Promise<boolean> => (await store.read.run(tenant, "r"))?.status === "COMPLETED";

it("executes a step that never returns elsewhere within maxStall, and refuses its late write", {
  timeout: 60_000,
}, async (test) => {
  const { expect } = test;
  const { store, lines, launch } = await setUp(test);
  const wedged = await launch("wedged", "hangs");
  await until(() => lines().length === 1);
  await launch("other");
  await until(() => completed(store));
  const [first, second] = lines();
  expect([first?.label, second?.label, lines().length]).toEqual(["wedged", "other", 2]);
  expect(second!.at - first!.at).toBeGreaterThanOrEqual(maxStallMs);
  expect(second!.at - first!.at).toBeLessThan(maxStallMs + ttlMs / 3 + 5_000);
  await wedged.request({} as never);
  const run = await store.read.run(tenant, "r");
  expect(run?.outcome).toBe("other");
  const terms = await store.read.terms(tenant, { run: "r" });
  expect(terms.map(({ label, startReason, endReason }) => [label, startReason, endReason])).toEqual([
    ["wedged", "start", "stalled"],
    ["other", "stalled", "released"],
  ]);
  const done = (await store.read.journal(tenant, { run: "r" })).filter(({ kind }) => kind === "step.done");
  expect(done.map(({ data }) => data)).toEqual([{ pos: 0, name: "import", value: "other" }]);
});

it("keeps the count of a step's attempts over kill -9", { timeout: 60_000 }, async (test) => {
  const { expect } = test;
  const { store, lines, launch } = await setUp(test);
  const first = await launch("wedged", "retries");
  await until(() => lines().length === 3);
  first.kill();
  await launch("other");
  await until(() => completed(store));
  expect(lines().map(({ label, attempt }) => `${label} ${attempt}`)).toEqual([
    "wedged 1",
    "wedged 2",
    "wedged 3",
    "other 3",
    "other 4",
  ]);
  const failed = (await store.read.journal(tenant, { run: "r" })).flatMap((record) =>
    record.kind === "step.failed" ? [record.data.attempt] : [],
  );
  expect([failed, (await store.read.run(tenant, "r"))?.outcome]).toEqual([[1, 2, 3], 4]);
});
