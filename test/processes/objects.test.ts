import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { countUnderKills } from "../../bench/objects.ts";

it("every increment of an object counts once although its processes are killed", { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "tape-objects-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const size = { processes: 3, calls: 12, kills: 3, ttlMs: 600 };
  const count = await countUnderKills(`sqlite:${join(folder, "tape.db")}`, size);
  expect(count).toMatchObject({ calls: 36, state: 36, kills: 3 });
});
