import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isTapeError } from "../../src/model/errors.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openShards, type ShardUrl } from "../../src/store/postgres/shards/open.ts";
import { otherTables, tenantTables } from "../../src/store/postgres/shards/tables.ts";
import { claimant, nonce, record, scheduleSpec, spec, step } from "../../testkit/conformance/frame.ts";
import { ownPostgres } from "../postgres/own.ts";
import { shardUrls } from "./fixture.ts";

const servers = [ownPostgres(14), ownPostgres(18)];
const audit = { by: "ann", reason: "room" };
const tenant = "globex"; // its hash says shard a

describe("moving a tenant", () => {
  let list: ShardUrl[];
  let store: Store;
  let admins: pg.Client[];

  beforeAll(async () => {
    list = await shardUrls(servers.map((url) => url()));
    store = await openShards({ shards: list });
    admins = await Promise.all(
      list.map(async ({ url }) => {
        const admin = new pg.Client({ connectionString: url });
        await admin.connect();
        return admin;
      }),
    );
  });

  afterAll(async () => {
    await store?.close();
    for (const admin of admins ?? []) await admin.end();
  });

  it("the list of copied tables is complete", async () => {
    const { rows } = await admins[0]!.query<{ name: string }>(
      "select c.relname as name from pg_class c where c.relnamespace = 'tape'::regnamespace and c.relkind = 'r'",
    );
    const listed = [...tenantTables.map(({ name }) => name), ...Object.keys(otherTables)];
    expect(listed.toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
  });

  it("[INV-25] takes everything along, and fences every holder", { timeout: 60_000 }, async () => {
    const run = spec({ input: { text: 'it\'s a "test" \\ é 😀' }, labels: { of: "x" } });
    const [created] = await store.intake.createRuns(tenant, [run], { ...claimant(), ttlMs: 60_000, nonce: nonce() });
    if (!created?.ok || created.term === undefined) throw new Error("not created");
    const { fence } = created.term;
    await store.fenced.append(fence, {
      after: 1,
      records: [step(0), record("state.published", { pos: 1, name: "p", value: 1 })],
    });
    await store.intake.signal(tenant, run.id, { name: "go", value: 1, key: "k" });
    await store.intake.putValue(tenant, "v", { a: 1 }, "must_create");
    await store.intake.putSchedule(tenant, { id: "s", spec: scheduleSpec(), nextAt: null, paused: false }, null);
    const cursor = (await store.read.feed(undefined, 2, tenant)).cursor;
    const before = await store.read.feed(cursor, 100, tenant);
    const journalBefore = await store.read.journal(tenant, { run: run.id });

    const moved = await store.shards!.move(tenant, "b", audit);
    expect(moved).toMatchObject({ tenant, moved: true });
    expect(await store.shards!.moves()).toEqual([]);

    const refusal = await store.fenced.append(fence, { after: 3, records: [step(2)] }).catch((error: unknown) => error);
    expect(isTapeError(refusal, "TAPE_FENCED"), String(refusal)).toBe(true);
    const [renewal] = await store.claim.renew([{ fence, progress: 1 }]);
    expect(renewal!.ok).toBe(false);
    expect(await store.read.journal(tenant, { run: run.id })).toEqual(journalBefore);
    expect((await store.read.value(tenant, "v"))?.value).toEqual({ a: 1 });
    expect((await store.read.schedules(tenant)).map(({ id }) => id)).toEqual(["s"]);
    expect((await store.intake.signal(tenant, run.id, { name: "go", value: 1, key: "k" })).duplicate).toBe(true);
    const after = await store.read.feed(cursor, 100, tenant);
    expect(after.records.map(({ journal, seq }) => [journal, seq])).toEqual(
      before.records.map(({ journal, seq }) => [journal, seq]),
    );
    const again = await store.claim.acquire(tenant, {
      target: { run: run.id },
      claimant: { ...claimant(), ttlMs: 60_000 },
      nonce: nonce(),
      expect: "free_or_expired",
    });
    if (!again.ok) throw again.error;
    expect(again.term.fence.token).toBeGreaterThan(fence.token);
    await store.fenced.append(again.term.fence, { after: again.term.head, records: [step(2)] });
    const { records } = await store.read.feed(after.cursor, 100, tenant);
    expect(records.map(({ kind }) => kind)).toEqual(["term.started", "step.done"]);

    const counts = await Promise.all(
      admins.map(
        async (admin) =>
          (await admin.query("select count(*)::int as n from tape.runs where tenant = $1", [tenant])).rows[0].n,
      ),
    );
    expect(counts).toEqual([0, 1]);
    const back = await store.shards!.move(tenant, "a", audit);
    expect(back.moved).toBe(true);
    expect((await store.read.journal(tenant, { run: run.id })).length).toBe(journalBefore.length + 2);
    expect((await store.shards!.move(tenant, "a", audit)).moved).toBe(false);
    const actions = await store.read.audit(tenant);
    expect(actions.map(({ action }) => action)).toEqual(["shard.move", "shard.move", "shard.move"]);
  });

  it("[INV-25] a process that does not know of the move yet reads and writes nothing wrong", {
    timeout: 60_000,
  }, async () => {
    const other = await openShards({ shards: list });
    try {
      const run = spec();
      await other.intake.createRuns(tenant, [run]);
      await store.shards!.move(tenant, "b", audit);
      expect((await other.read.run(tenant, run.id))?.id).toBe(run.id);
      await other.intake.putValue(tenant, "late", 1, "must_create");
      expect((await store.read.value(tenant, "late"))?.value).toBe(1);
    } finally {
      await other.close();
    }
  });
});
