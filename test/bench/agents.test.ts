import { expect, it } from "vitest";
import { benchAgents } from "../../bench/agents.ts";

it("the benchmark of agents has every figure, and whole requests are the longer journal", async () => {
  const { sqlite } = await benchAgents({ flags: ["--only", "sqlite", "--turns", "30", "--rounds", "1"] });
  expect(sqlite).toMatchObject({ turns: 30, rounds: 1 });
  const { deltas, whole, replayRatio, loopMs } = sqlite!;
  expect(deltas.journalBytes).toBeGreaterThan(30 * 2_000);
  expect(whole.journalBytes).toBeGreaterThan(5 * deltas.journalBytes);
  expect(sqlite).toHaveProperty("ownRatio");
  for (const figure of [deltas.replayMs, whole.replayMs, replayRatio, loopMs]) expect(figure).toBeGreaterThan(0);
}, 60_000);
