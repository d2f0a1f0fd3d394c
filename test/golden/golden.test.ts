import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { ReusedDatabase } from "../../simulation/reused-database.ts";
import { encode } from "../../src/base/codec.ts";
import type { JournalRecord } from "../../src/model/records.ts";
import type { RunView } from "../../src/store/contract/store.ts";
import { readAll } from "../../src/store/read-all.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { sampleDay, sampleOf } from "../sample.ts";
import { runId } from "./program.ts";
import { programs } from "./programs.ts";
import { runProgram, type SceneOptions } from "./scene.ts";
import { type KeptStore, postgresOf, sqliteOf, sqliteOn } from "./stores.ts";
import { type KeptTenant, parseKept } from "./write.ts";

/** The releases whose journals are kept. `node test/golden/write.ts <commit>` adds one; it is never changed. */
const releases = readdirSync(import.meta.dirname).filter((name) => /^[0-9a-f]{8}$/.test(name));

const fileOf = (release: string, name: string): Buffer => readFileSync(join(import.meta.dirname, release, name));

/** The journals of a tenant's runs, by the id of the run. */
async function journalsOf({ time, store, tenant }: SceneOptions): Promise<Map<string, JournalRecord[]>> {
  const runs = await time.during(store.read.runs(tenant));
  const journals = new Map<string, JournalRecord[]>();
  for (const { id } of runs)
    journals.set(id, await time.during(readAll((from) => store.read.journal(tenant, { run: id }, { from }))));
  return journals;
}

/** Operations whose result is in the journal: replay returns it without calling their bodies. */
function recordedBodies(journals: ReadonlyMap<string, readonly JournalRecord[]>): string[] {
  return [...journals].flatMap(([id, records]) =>
    records.flatMap(({ kind, data }) => {
      if (kind === "step.done" || kind === "decision.made" || kind === "sample.taken") return [`${id} ${data.name}`];
      return [];
    }),
  );
}

const isEnded = (run: Pick<RunView, "endedAt">): boolean => run.endedAt !== null;

/** Continues the runs of a tenant with the code of today, and compares with what their own release made of them. */
async function expectSameEnd(scene: Omit<SceneOptions, "program" | "tenant">, kept: KeptTenant): Promise<void> {
  const { time, store } = scene;
  const { tenant } = kept;
  const program = programs.find(({ name }) => name === kept.program)!;
  const whole = { ...scene, tenant, program };
  const before = await journalsOf(whole);
  const recorded = recordedBodies(before);
  const ended = (await time.during(store.read.runs(tenant))).filter(isEnded).map(({ id }) => id);
  const { appends: _, ...end } = await runProgram(whole, { continues: { world: kept.worldThen } });
  expect(end, tenant).toEqual(kept.end);
  const after = await journalsOf(whole);
  for (const [id, records] of before) {
    expect(after.get(id)!.slice(0, records.length), `${tenant}: ${id}`).toEqual(records);
    if (ended.includes(id)) expect(after.get(id), `${tenant}: ${id}`).toEqual(records);
  }
  // A run that is attempted again repeats the step that failed, and its clean-up.
  const repeated = [...after.values()].some((records) => records.some(({ kind }) => kind === "run.retried"));
  if (!repeated)
    expect(
      end.called.filter((call) => recorded.includes(call)),
      tenant,
    ).toEqual([]);
}

/** Reads every record of the store, so once for many tenants. */
async function expectFold({ time, store }: Pick<SceneOptions, "time" | "store">, all: readonly KeptTenant[]) {
  const tenants = all.map(({ tenant }) => tenant);
  expect(await time.during(checkProjection(store, tenants))).toEqual([]);
}

const byProgram = (all: readonly KeptTenant[]): [string, KeptTenant[]][] => [
  ...Map.groupBy(all, ({ program }) => program),
];

describe.each(releases)("journals of release %s", (release) => {
  const kept = parseKept(fileOf(release, "kept.jsonl").toString());

  describe("on SQLite", () => {
    const old = gunzipSync(fileOf(release, "sqlite.db.gz"));
    let migrated: Uint8Array;
    let database: ReusedDatabase;
    const at = (): VirtualTime => {
      const time = new VirtualTime();
      time.jump(kept.now.sqlite);
      return time;
    };
    beforeAll(async () => {
      const opened = await sqliteOf(at(), old);
      migrated = await opened.content();
      await opened.close();
      database = new ReusedDatabase(migrated, () => {});
    });

    it("are read as they were written", async () => {
      const time = at();
      const { store, close } = await sqliteOn(time, database);
      const lines: string[] = [];
      for (const { tenant } of kept.sqlite.filter((one) => one.tenant.endsWith(".ended")).reverse())
        for (const { kind, data, seq } of await time.during(store.read.journal(tenant, { run: runId })))
          lines.push(encode({ tenant, seq, kind, data }));
      await expectFold({ time, store }, kept.sqlite);
      await close();
      expect(lines).toEqual(fileOf(release, "journals.jsonl").toString().trim().split("\n"));
    });

    it.each(byProgram(kept.sqlite))(
      "%s: replay returns what is recorded, and the end is the same",
      async (_, tenants) => {
        for (const tenant of tenants) {
          const time = at();
          const opened = await sqliteOn(time, database);
          await expectSameEnd({ time, ...opened }, tenant);
          if (tenant === tenants.at(-1)) await expectFold({ time, ...opened }, [tenant]);
          await opened.close();
        }
      },
    );
  });

  // A program takes four times as long as on SQLite: one in two, another half every day.
  describe(`on PostgreSQL (sample of ${sampleDay})`, () => {
    const time = new VirtualTime();
    let opened: KeptStore;
    beforeAll(async () => {
      time.jump(kept.now.postgres);
      const content = gunzipSync(fileOf(release, "postgres.rows.gz"));
      opened = await postgresOf(inject("postgres18"), time, { content, schema: kept.schema });
    });
    afterAll(() => opened?.close());

    it.each(sampleOf(byProgram(kept.postgres), 2))(
      "%s: replay returns what is recorded, and the end is the same",
      async (_, tenants) => {
        for (const tenant of tenants) await expectSameEnd({ time, ...opened }, tenant);
      },
    );

    it("the tables are the fold of the old and the new records", { timeout: 120_000 }, () =>
      expectFold({ time, ...opened }, kept.postgres),
    );
  });
});
