import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { deaths } from "./dying.ts";
import { ServerlessWorld } from "./serverless-world.ts";

it("writers die between alarm, commit and wake-up: every run that exists is found by an alarm", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tape-serverless-"));
  const world = await ServerlessWorld.open(`sqlite:${join(folder, "tape.db")}`, true);
  try {
    await Promise.all(deaths.map((death) => world.kill(`run-${death}`, death)));
    const pending = world.tasks.pending.map(({ at }) => at - Date.now());
    expect(Math.max(...pending)).toBeLessThanOrEqual(20_000);
    await world.idle(); // the alarms of the dead are all there is
    const found = new Map((await world.found()).map((one) => [one.run, one]));
    expect(found.has("run-armed")).toBe(false);
    expect(found.get("run-committed")?.status).toBe("COMPLETED");
    expect(found.get("run-woken")?.status).toBe("COMPLETED");
    for (const { run, status } of found.values()) expect([run, status]).toEqual([run, "COMPLETED"]);
    expect(world.tasks.created).toBeGreaterThan(0);
  } finally {
    await world.close();
    await rm(folder, { recursive: true, force: true });
  }
});
