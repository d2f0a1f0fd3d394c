import { expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { openRemote } from "../../src/client/store.ts";
import { createRunner, effect, Tape, workflow } from "../../src/exports/index.ts";
import { openStore } from "../../src/host/open-store.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { faults, faulty, hurried } from "./faulty.ts";
import { serverOn } from "./stage.ts";

it("loses no run and repeats no effect with lost, doubled and late messages", async () => {
  const behind = await openStore("memory:");
  const server = serverOn(behind, "default");
  const sent = new Map<string, number>();
  const wire = effect(
    "wire",
    async (invoice: string, fx) => {
      sent.set(fx.key, (sent.get(fx.key) ?? 0) + 1);
      return `paid ${invoice}`;
    },
    { semantics: "non_idempotent", compensate: async () => {} },
  );
  const pay = workflow("pay", async (tape, invoice: string) => {
    const rate = await tape.step("rate", () => 2);
    const [a, b] = await Promise.all([wire(`${invoice}/a`), wire(`${invoice}/b`)]);
    await tape.sleep("1ms");
    return [a, b, await tape.step("last", () => rate + 1)];
  });
  const way = faulty(server.exchange, seededRandom("faults"), 4);
  const app = await Tape.connect("http://127.0.0.1:1", {
    exchange: way.exchange,
    runner: createRunner({ workflows: [pay], effects: [wire] }),
    clock: hurried,
    random: seededRandom("client"),
  });
  // A busy machine sends fewer and larger requests: as many runs as it takes for every fault to have its turn.
  let wave = 0;
  while (wave === 0 || (wave < 20 && way.bitten.size < faults.length)) {
    const invoices = Array.from({ length: 40 }, (_, k) => `i-${wave}-${k}`);
    const results = await Promise.all(
      invoices.map(async (invoice) => (await app.start(pay, invoice, { id: invoice })).result()),
    );
    expect(results).toEqual(invoices.map((invoice) => [`paid ${invoice}/a`, `paid ${invoice}/b`, 3]));
    wave++;
  }
  expect([...sent.values()]).toEqual(Array(80 * wave).fill(1));
  const rows = await behind.read.effects("default", { status: ["CONFIRMED"], limit: 10_000 });
  expect(new Set(rows.filter(({ role }) => role === "effect").map(({ key }) => key))).toEqual(new Set(sent.keys()));
  expect([...way.bitten.keys()].sort()).toEqual([...faults].sort());
  await app.close();
  expect(await checkProjection(behind, ["default"])).toEqual([]);
  server.close();
  await behind.close();
}, 60_000);

it("carries out calls without a key once", async () => {
  const behind = await openStore("memory:");
  const { exchange } = serverOn(behind, "default");
  const way = faulty(exchange, seededRandom("once"), 2);
  const store = await openRemote("http://127.0.0.1:1", {
    exchange: way.exchange,
    clock: hurried,
    random: seededRandom(1),
  });
  const [created] = await store.intake.createRuns("default", [{ id: "r", workflow: "w", input: null }]);
  expect(created).toMatchObject({ ok: true });
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, k) => store.intake.signal("default", "r", { name: "s", value: k })),
  );
  expect(answers.map(({ n }) => n).sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, k) => k + 1));
  const notes = await behind.read.journal("default", { run: "r" }, { inbox: true });
  expect(new Set(notes.map(({ data }) => (data as { value: unknown }).value)).size).toBe(60);
  expect(notes).toHaveLength(60);
  for (let version = 0; version < 20; version++) {
    expect((await store.intake.putValue("default", "k", version, { version })).version).toBe(version + 1);
  }
  expect([...way.bitten.keys()].sort()).toEqual([...faults].sort());
  await store.close();
  await behind.close();
}, 60_000);
