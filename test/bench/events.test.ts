import { expect, it } from "vitest";
import { measureEvents, small } from "../../bench/events.ts";

it("the benchmark of events has every figure, and nothing is lost", async () => {
  const figures = await measureEvents({ ...small, records: 1_000, rate: 150 }, "sqlite");
  expect(Object.keys(figures)).toEqual(["fanoutRatioSqlite", "fanoutRatioPostgres", "lost", "outOfOrder", "repeats"]);
  expect(figures).toMatchObject({ fanoutRatioPostgres: null, lost: 0, outOfOrder: 0 });
  expect(figures.fanoutRatioSqlite).toBeGreaterThan(0);
}, 60_000);
