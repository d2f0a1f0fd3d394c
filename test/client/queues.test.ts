import { expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { queue } from "../../src/sdk/queue.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { remoteOn } from "./stage.ts";

it("drives runs of a queue through a server, never more at once than its limit", async () => {
  const behind = await openStore("memory:");
  const inside = { now: 0, max: 0 };
  const models = queue("models", { concurrency: 2 });
  const ask = workflow(
    "ask",
    async (tape, n: number) =>
      tape.step("ask", async () => {
        inside.max = Math.max(inside.max, ++inside.now);
        await new Promise<void>((resolve) => setImmediate(resolve));
        inside.now--;
        return n;
      }),
    { queue: models },
  );
  const runner = createRunner({ workflows: [ask] });
  const open = async () => Tape.open({ store: await remoteOn(behind, "acme"), tenant: "acme", runner, log: "silent" });
  const apps = await Promise.all([open(), open()]);
  onTestFinished(async () => {
    for (const app of apps) await app.close();
    await behind.close();
  });
  const [app] = apps;
  const audit = { by: "ada", reason: "drill" };
  await app.queues.pause("models", audit);
  const started = await app.startAll(
    ask,
    Array.from({ length: 30 }, (_, input) => ({ input, key: `k-${input % 3}` })),
  );
  const runs = started.flatMap((result) => (result.ok ? [result.run] : []));
  expect(await runs[7]!.status()).toBe("QUEUED");
  expect((await app.queues.explain(runs[7]!.id))?.reasons).toEqual([
    { why: "paused", by: "ada", reason: "drill" },
    { why: "behind", runs: 2, more: false },
  ]);
  expect((await app.queues.keys("models")).map(({ key, waiting }) => [key, waiting])).toEqual([
    ["k-0", 10],
    ["k-1", 10],
    ["k-2", 10],
  ]);
  await app.queues.resume("models", audit);
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(runs.map((_, k) => k));
  expect(inside.max).toBeLessThanOrEqual(2);
  expect((await app.queues.list())[0]).toMatchObject({ started: 30, running: 0, waiting: 0 });
});
