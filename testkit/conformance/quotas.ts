import { strict as assert } from "node:assert";
import type { QuotaKind } from "../../src/model/quota.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, refused, scheduleSpec, spec, tenant, unique } from "./frame.ts";
import { begin, countOutcomes, ended, unchanged } from "./holder.ts";

const audit = { by: "ann", reason: "a drill" };
const none = { runs: null, bytes: null, schedules: null, streams: null };

/** Starts runs concurrently; counts which were admitted. */
async function starts(store: Store, count: number, of = tenant): Promise<(true | string)[]> {
  const verdicts = await store.intake.createRuns(
    of,
    Array.from({ length: count }, () => spec()),
  );
  return verdicts.map((verdict) => verdict.ok || verdict.error.code);
}

const putSchedule = (store: Store, id = unique("s"), of = tenant) =>
  store.intake.putSchedule(of, { id, spec: scheduleSpec(), nextAt: null, paused: false });

const exceeded = (quota: QuotaKind, used: number, limit: number) => ({ quota, used, limit });

/** Quotas of a tenant, and how exact they are. */
export const quotas: Cases = ({ it }, fresh) => {
  it("a quota can be set, listed, audited and removed", async () => {
    const { store } = fresh();
    assert.deepEqual(await store.read.quotas(), []);
    const used = { runs: 0, bytes: null, schedules: 0 };
    assert.deepEqual(await store.read.quota(tenant), { tenant, set: none, limits: none, used });
    const set = await store.intake.setQuota(tenant, { runs: 5, streams: 2 }, audit);
    assert.deepEqual(set, {
      tenant,
      set: { ...none, runs: 5, streams: 2 },
      limits: { ...none, runs: 5, streams: 2 },
      used,
    });
    const changed = await store.intake.setQuota(tenant, { runs: null }, audit);
    assert.deepEqual(changed.set, { ...none, streams: 2 });
    assert.deepEqual(await store.read.quota(tenant), changed);
    assert.deepEqual(await store.read.quotas(), [changed]);
    const [last] = await store.read.audit(tenant);
    assert.deepEqual([last?.action, last?.by, last?.reason], ["quota.set", "ann", "a drill"]);
    await store.intake.setQuota(undefined, { runs: 9 }, { ...audit, home: tenant });
    const [ours] = await store.read.audit(tenant);
    assert.deepEqual([ours?.action, ours?.detail], ["quota.set", { tenant, default: true, ...none, runs: 9 }]);
  });

  it("an invalid limit, an unknown quota or a missing reason is refused", async () => {
    const { store } = fresh();
    await unchanged(store, async () => {
      for (const limit of [-2, 1.5, Number.NaN, "5" as never, 2 ** 60]) {
        await refused("TAPE_BAD_INPUT", store.intake.setQuota(tenant, { runs: limit }, audit));
      }
      await refused("TAPE_BAD_INPUT", store.intake.setQuota(tenant, { cpu: 5 } as never, audit));
      await refused("TAPE_BAD_INPUT", store.intake.setQuota(tenant, { runs: 5 }, { by: "ann", reason: "" }));
      await refused("TAPE_BAD_INPUT", store.intake.setQuota("", { runs: 5 }, audit));
    });
    assert.deepEqual(await store.read.quotas(), []);
  });

  it("concurrent starts never exceed the limit of runs, for this tenant only", async () => {
    const { store, another } = fresh();
    const clients = [store, await another()];
    await store.intake.setQuota(tenant, { runs: 5 }, audit);
    const all = await Promise.all(Array.from({ length: 6 }, (_, k) => starts(clients[k % 2]!, 2)));
    assert.deepEqual(countOutcomes(all.flat()), { true: 5, TAPE_QUOTA: 7 });
    assert.equal((await store.read.runs(tenant)).length, 5);
    assert.equal((await store.read.quota(tenant)).used.runs, 5);
    const [verdict] = await store.intake.createRuns(tenant, [spec()]);
    assert.ok(verdict !== undefined && !verdict.ok);
    assert.deepEqual(verdict.error.details, exceeded("runs", 5, 5));
    // Once the quota is known, runs are created in batches; every second start finds its run already there.
    await store.intake.setQuota(tenant, { runs: 40 }, audit);
    await starts(store, 1);
    const many = Array.from({ length: 30 }, () => spec());
    const first = await Promise.all(clients.map((client) => client.intake.createRuns(tenant, many)));
    assert.deepEqual(countOutcomes(first.flat().map((one) => one.ok && one.fresh)), { true: 30, false: 30 });
    const more = await Promise.all(Array.from({ length: 8 }, (_, k) => starts(clients[k % 2]!, 5)));
    assert.deepEqual(countOutcomes(more.flat()), { true: 4, TAPE_QUOTA: 36 });
    assert.equal((await store.read.quota(tenant)).used.runs, 40);
    assert.deepEqual(await starts(store, 1, "globex"), [true]);
    assert.deepEqual((await store.read.quota("globex")).limits, none);
  });

  it("a refused start writes nothing; a repeated one finds its run despite the limit", async () => {
    const { store } = fresh();
    await store.intake.setQuota(tenant, { runs: 1 }, audit);
    const first = spec();
    const [created] = await store.intake.createRuns(tenant, [first]);
    assert.ok(created?.ok && created.fresh);
    await unchanged(store, async () => {
      assert.deepEqual(await starts(store, 2), ["TAPE_QUOTA", "TAPE_QUOTA"]);
      const [repeated] = await store.intake.createRuns(tenant, [first]);
      assert.ok(repeated?.ok && !repeated.fresh && repeated.journal === created.journal);
      const once = store.once({ tenant, key: unique("key"), hash: "h" });
      const [refusedOnce] = await once.createRuns(tenant, [spec()]);
      assert.ok(refusedOnce !== undefined && !refusedOnce.ok && refusedOnce.error.code === "TAPE_QUOTA");
    });
  });

  it("an ended run frees its place within a second of a refusal", async () => {
    const { store, elapse } = fresh();
    await store.intake.setQuota(tenant, { runs: 1 }, audit);
    const run = await begin(store);
    assert.deepEqual(await starts(store, 1), ["TAPE_QUOTA"]);
    await run.write(ended("COMPLETED", { outcome: 1 }));
    assert.equal((await store.read.quota(tenant)).used.runs, 0);
    await elapse(1_000);
    assert.deepEqual(countOutcomes(await starts(store, 2)), { true: 1, TAPE_QUOTA: 1 });
  });

  it("earlier runs and children count towards the limit, but children are admitted", async () => {
    const { store } = fresh();
    const parent = await begin(store);
    await store.intake.setQuota(tenant, { runs: 2 }, audit);
    assert.equal((await store.read.quota(tenant)).used.runs, 1);
    const child = (pos: number) =>
      ({ kind: "child.started", data: { pos, id: unique("child"), workflow: "w", input: 1, inputHash: "h" } }) as const;
    await parent.write(child(0), child(1));
    assert.equal((await store.read.quota(tenant)).used.runs, 3);
    assert.deepEqual(await starts(store, 1), ["TAPE_QUOTA"]);
  });

  it("children started after a count are included in the next, a second later", async () => {
    const { store, elapse } = fresh();
    await store.intake.setQuota(tenant, { runs: 3 }, audit);
    const parent = await begin(store);
    const child = (pos: number) =>
      ({ kind: "child.started", data: { pos, id: unique("child"), workflow: "w", input: 1, inputHash: "h" } }) as const;
    await parent.write(child(0), child(1));
    assert.equal((await store.read.quota(tenant)).used.runs, 3);
    await elapse(1_000);
    const many = await Promise.all(Array.from({ length: 3 }, () => starts(store, 2)));
    assert.deepEqual(countOutcomes(many.flat()), { TAPE_QUOTA: 6 });
  });

  it("a default applies to tenants without their own quota, and -1 means unlimited", async () => {
    const { store } = fresh();
    await store.intake.setQuota(undefined, { runs: 1, schedules: 1 }, audit);
    await store.intake.setQuota("globex", { runs: -1 }, audit);
    await store.intake.setQuota("initech", { runs: 2 }, audit);
    assert.deepEqual(countOutcomes(await starts(store, 3)), { true: 1, TAPE_QUOTA: 2 });
    assert.deepEqual(await starts(store, 3, "globex"), [true, true, true]);
    assert.deepEqual(countOutcomes(await starts(store, 3, "initech")), { true: 2, TAPE_QUOTA: 1 });
    assert.deepEqual((await store.read.quota("globex")).limits, { ...none, schedules: 1 });
    const listed = await store.read.quotas();
    assert.deepEqual(
      listed.map((one) => one.tenant),
      ["", tenant, "globex", "initech"],
    );
    assert.deepEqual(
      (await store.read.quotas({ above: tenant, limit: 1 })).map((one) => one.tenant),
      ["globex"],
    );
  });

  it("no schedule beyond the limit is created; changes and deletions are allowed", async () => {
    const { store, another } = fresh();
    const clients = [store, await another()];
    await putSchedule(store, "old");
    await store.intake.setQuota(tenant, { schedules: 3 }, audit);
    const puts = Array.from({ length: 6 }, (_, k) =>
      putSchedule(clients[k % 2]!).then(
        () => "put",
        (error: { code?: string }) => error.code,
      ),
    );
    assert.deepEqual(countOutcomes(await Promise.all(puts)), { put: 2, TAPE_QUOTA: 4 });
    await unchanged(store, async () => {
      const { details } = await refused("TAPE_QUOTA", putSchedule(store));
      assert.deepEqual(details, exceeded("schedules", 3, 3));
    });
    assert.equal((await putSchedule(store, "old")).version, 2);
    assert.equal(await store.intake.deleteSchedule(tenant, "old"), true);
    await putSchedule(store);
    assert.equal((await store.read.quota(tenant)).used.schedules, 3);
    await putSchedule(store, "s", "globex");
  });

  it("a firing beyond the limit changes nothing, and the schedule stays due", async () => {
    const { store } = fresh();
    await store.intake.setQuota(tenant, { runs: 1 }, audit);
    await starts(store, 1);
    const now = await store.read.now();
    await store.intake.putSchedule(tenant, { id: "s", spec: scheduleSpec(), nextAt: now - 1, paused: false });
    await unchanged(store, async () => {
      await refused("TAPE_QUOTA", store.intake.fireSchedule(tenant, "s", 1, null, [spec()]));
    });
    assert.equal((await store.read.dueSchedules(1, tenant))[0]?.id, "s");
  });

  it("all records of a tenant's runs count as bytes, until they are pruned", async () => {
    const { store } = fresh();
    const run = await begin(store, { input: "x".repeat(10_000) });
    assert.deepEqual(await starts(store, 1, "globex"), [true]);
    await store.intake.setQuota(tenant, { bytes: 30_000 }, audit);
    const first = (await store.read.quota(tenant)).used.bytes!;
    assert.ok(first > 10_000 && first < 12_000, String(first));
    assert.deepEqual(await starts(store, 1), [true]);
    await run.write({ kind: "step.done", data: { pos: 0, name: "s", value: "y".repeat(25_000) } });
    await run.write(ended("COMPLETED", { outcome: 1 }));
    await store.intake.setQuota(tenant, { bytes: 30_001 }, audit); // measures immediately
    assert.deepEqual(await starts(store, 1), ["TAPE_QUOTA"]);
    const before = (await store.read.quota(tenant)).used.bytes!;
    assert.equal(await store.intake.prune(tenant, (await store.read.now()) + 1, 10), 1);
    const after = (await store.read.quota(tenant)).used.bytes!;
    assert.ok(before - after > 10_000, `${before} ${after}`);
    assert.ok(((await store.read.quota("globex")).used.bytes ?? 0) < 1_000);
  });
};
