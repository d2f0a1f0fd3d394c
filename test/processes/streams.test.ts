import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { killStreams } from "../../bench/streams/kill.ts";
import { seededRandom } from "../../src/base/random.ts";

it("readers keep each chunk once, in order, when the writer is killed in mid-stream", { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "tape-streams-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const random = seededRandom("kills");
  const verdict = await killStreams({
    ...{ url: `sqlite:${join(folder, "tape.db")}`, ttlMs: 1_000, kills: 1, bodies: 4, chunks: 20, gapMs: 10 },
    random: () => random.float(),
  });
  expect(verdict).toMatchObject({ kills: 1, duplicates: 0, gaps: 0, disordered: 0 });
  expect(verdict.rewinds).toBeGreaterThan(0);
});
