import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { record, tenant } from "../../../testkit/conformance/frame.ts";
import { begin, type Holder } from "../../../testkit/conformance/holder.ts";
import { type Scene, sceneOn } from "./scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
});
afterAll(() => scene.close());

const read = (of: string, journal: number, page: { from?: number; limit?: number } = {}) =>
  scene.store.read.journal(of, { journal }, page);

async function withSteps(values: readonly unknown[]): Promise<Holder> {
  const run = await begin(scene.store);
  for (const [pos, value] of values.entries()) await run.write(record("step.done", { pos: pos + 1, name: "s", value }));
  return run;
}

it("journals that are read at once give what each gives alone", async () => {
  const runs = [
    await withSteps([]),
    await withSteps([1]),
    await withSteps(Array.from({ length: 6 }, () => "six")),
    await withSteps(Array.from({ length: 7 }, () => "seven")),
    await withSteps(Array.from({ length: 20 }, () => "twenty")),
    await withSteps(["x".repeat(100_000), 2]),
    await withSteps([3]),
  ];
  const alone = [];
  for (const { journal } of runs) alone.push(await read(tenant, journal, { limit: 1_000 }));
  expect(alone.map((records) => records.length)).toEqual(runs.map(({ head }) => head));
  const together = await Promise.all(runs.map(({ journal }) => read(tenant, journal)));
  expect(together.map((records) => [...records])).toEqual(alone.map((records) => [...records]));
});

it("a journal read for two tenants at once belongs to one of them", async () => {
  const runs = await Promise.all(Array.from({ length: 8 }, () => withSteps([1])));
  const both = await Promise.all(
    runs.flatMap(({ journal }) => [read("another", journal), read(tenant, journal), read(tenant, journal)]),
  );
  for (const [k, records] of both.entries()) expect(records).toHaveLength(k % 3 === 0 ? 0 : runs[0]!.head);
});

it("journals that do not exist are empty, however many are read", async () => {
  const missing = await Promise.all(Array.from({ length: 10 }, (_, k) => read(tenant, 1_000_000 + k)));
  expect(missing.map((records) => records.length)).toEqual(Array.from({ length: 10 }, () => 0));
});
