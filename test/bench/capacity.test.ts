import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { demandOf, sizeOf } from "../../bench/capacity/model.ts";
import { simulate } from "../../bench/capacity/simulated.ts";

/** Wakes 20 times a second: the processes are never idle, as in the fleets that the model is for. */
const fleet = { waiting: 1_000, intervalSeconds: 50, stepsPerWake: 2, held: 30, processes: 3, ttlSeconds: 30 };

it("the capacity model predicts what the engine asks of its store", { timeout: 60_000 }, async () => {
  const observed = await simulate(fleet, 60);
  const predicted = demandOf(fleet);
  for (const name of ["wakes", "records", "appends", "renewals", "renewCalls"] as const) {
    expect(observed[name] / predicted[name], name).toBeGreaterThan(0.94);
    expect(observed[name] / predicted[name], name).toBeLessThan(1.06);
  }
  expect(observed.late).toBeLessThan(predicted.wakes); // at most what falls due in the last second
});

it("renewals need calls of their own beyond a thousand leases of a process", () => {
  const calls = (held: number): number => demandOf({ ...fleet, held, processes: 1 }).renewCalls;
  expect(calls(1_001)).toBeCloseTo(2 * calls(1_000));
});

it("shards follow the sum of wake-ups and renewals", () => {
  const server = { wakes: 100, renewals: 1_000, bytesPerWaitingRun: 1_000, bytesPerRecord: 100, headroom: 0.5 };
  const size = (more: object) => sizeOf({ ...fleet, waiting: 50_000, held: 0, ...more }, server).shards;
  expect(size({})).toBe(20); // 1,000 wake-ups a second at 50 of each shard
  expect(size({ held: 10_000 })).toBe(22); // and 1,000 renewals a second
  expect(size({ waiting: 1 })).toBe(1);
});

it("docs/internet-scale.md has the figures of the model", () => {
  const page = readFileSync(new URL("../../docs/internet-scale.md", import.meta.url), "utf8");
  const server = { wakes: 678, renewals: 49_505, bytesPerWaitingRun: 961, bytesPerRecord: 150, headroom: 0.5 };
  expect(page).toContain(`| wake-ups a second, one step each | 1,888 | ${server.wakes} |`);
  expect(page).toContain(`| renewals a second | 18,904 | ${text(server.renewals)} |`);
  for (const waiting of [1e6, 12e6, 1_200e6]) {
    const of = {
      waiting,
      intervalSeconds: 3_600,
      stepsPerWake: 1,
      held: waiting / 1_000,
      processes: 1,
      ttlSeconds: 30,
    };
    const { wakes, renewals } = demandOf(of);
    const { shards, liveRunsPerShard, feedRecords, liveBytes, bytesPerDay } = sizeOf(of, server);
    const counts = [waiting, shards, liveRunsPerShard, wakes, renewals, feedRecords].map(text);
    const bytes = [liveBytes, bytesPerDay].map((count) => `${text(count / 1e9)} GB`);
    expect(page).toContain(`| ${[...counts, ...bytes].join(" | ")} |`);
  }
});

const text = (value: number): string => Math.round(value).toLocaleString("en-US");
