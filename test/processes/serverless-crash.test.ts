import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { deaths } from "./dying.ts";
import { ServerlessWorld } from "./serverless-world.ts";

it.concurrent.each(deaths)("a writer dies, %s: an alarm of its own finds the run, if it exists", async (death) => {
  const folder = await mkdtemp(join(tmpdir(), "tape-serverless-"));
  // Each death has a deployment of its own: there the alarm of another writer finds nothing.
  const world = await ServerlessWorld.open(`sqlite:${join(folder, "tape.db")}`, true);
  try {
    await world.kill("run", death);
    const pending = world.tasks.pending.map(({ at }) => at - Date.now());
    expect(pending.length).toBeGreaterThan(0);
    expect(Math.max(...pending)).toBeLessThanOrEqual(20_000);
    await world.idle(); // the alarms of the dead are all there is
    const statuses = (await world.found()).map(({ status }) => status);
    const expected = { armed: [[]], sent: [[], ["COMPLETED"]], committed: [["COMPLETED"]], woken: [["COMPLETED"]] };
    expect(expected[death]).toContainEqual(statuses);
  } finally {
    await world.close();
    await rm(folder, { recursive: true, force: true });
  }
});
