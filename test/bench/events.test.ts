import { expect, it } from "vitest";
import { eventParts, measureEvents, planOf } from "../../bench/events/all.ts";

it("the benchmark of events has every figure, and null for what was not measured", async () => {
  const { figures } = await measureEvents(planOf("ratio,sqlite", ["--small"]));
  expect(Object.keys(figures)).toEqual(Object.values(eventParts).flatMap((part) => part.figures));
  expect(figures.fanoutRatioSqlite).toBeGreaterThan(0);
  expect(figures).toMatchObject({ fanoutRatioPostgres: null, lost: null, idleStatements: null });
}, 60_000);

it("an unknown part is refused with the names of all", () => {
  expect(() => planOf("ratio,teapot", [])).toThrow(/teapot[\s\S]*writer-kills/);
  expect(planOf("shards", [])).toEqual({ parts: ["shards"], stores: ["sqlite", "postgres"], small: false });
  expect(planOf("sqlite", ["--small"]).parts).toEqual(Object.keys(eventParts));
});
