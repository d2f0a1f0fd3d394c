import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { TermView } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";
import { Actor } from "./actor.ts";
import { lawful, others, ownersKinds } from "./acts.ts";

const postgresUrl = ownPostgres(18);

const tenant = "default";
/** The successor's: a busy machine must not lose it by itself. */
const longMs = 60_000;

interface World {
  readonly url: string;
  readonly store: Store;
  /** How long the zombie's lease lasts: as short as the store allows, because the test waits for it. */
  readonly ttlMs: number;
}

async function onSqlite(test: TestContext): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "tape-zombie-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url);
  test.onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { url, store, ttlMs: 800 };
}

async function onPostgres(test: TestContext): Promise<World> {
  const database = await freshDatabase(postgresUrl());
  const url = `${database}?transaction_bound_ms=2000&connections=3`;
  const store = await openStore(url);
  test.onTestFinished(async () => {
    await store.close();
    await dropDatabase(database);
  });
  return { url, store, ttlMs: 2_200 };
}

/** Everything that a refused write might have changed. The lease is left out: its holder renews it. */
async function contents(store: Store, run: string): Promise<unknown> {
  const { read } = store;
  const { records } = await read.feed(undefined);
  const { lease: _lease, ...row } = (await read.run(tenant, run))!;
  // Counted by the steady clock and shown by the calendar: a millisecond more or less is no change.
  const effects = (await read.effects(tenant)).map(({ sendUntil: _until, ...effect }) => effect);
  const tables = [effects, read.gates(tenant), read.timers(tenant), read.budgets(tenant, run), read.values(tenant, "")];
  return { records, row, runs: (await read.runs(tenant)).length, tables: await Promise.all(tables) };
}

async function untilExpired(store: Store, target: { run: string } | { name: string }): Promise<void> {
  while ((await store.read.lease(tenant, target))?.state !== "EXPIRED") await systemClock.sleep(20);
}

const story = (terms: readonly TermView[]) =>
  terms.map(({ label, startReason, endReason }) => [label, startReason, endReason]);

// Side by side: most of their time they wait for a lease to run out.
describe.concurrent.each([
  ["one SQLite file", onSqlite],
  ["one PostgreSQL database", onPostgres],
])("two processes on %s", (_name, open) => {
  it("a worker stopped in its work, replaced and woken can write nothing of any kind", async (test) => {
    const { expect } = test;
    const { url, store, ttlMs } = await open(test);
    const run = "payment";
    await store.intake.createRuns(tenant, [{ id: run, workflow: "w", input: 1, budget: { usd: 1_000_000 } }]);
    const [a, b] = await Promise.all([Actor.start("worker-a", url, test), Actor.start("worker-b", url, test)]);
    const { journal = 0, ...first } = await a.ask({ do: "take", run, ttlMs });
    expect(first).toEqual({ say: "held", token: "1", reason: "start" });
    // In the middle of an effect: it has announced that it sends, and is stopped before it has sent.
    const semantics = { semantics: "idempotent", dispatch: "inline", args: 1, argsHash: "h" } as const;
    const announced: NewRecord[] = [
      { kind: "step.done", data: { pos: 0, name: "reserve", value: "done" } },
      { kind: "effect.intended", data: { pos: 1, name: "wire", key: "k", ...semantics } },
      { kind: "effect.dispatched", data: { pos: 1, attempt: 1, sendWithinMs: 1_000 } },
    ];
    for (const record of announced)
      expect(await a.ask({ do: "write", records: [record] })).toEqual({ say: "accepted" });
    a.pause();
    await untilExpired(store, { run });

    const second = await b.ask({ do: "take", run, ttlMs: longMs });
    expect(second).toEqual({ say: "held", token: "2", reason: "recovery", journal });
    const settled: NewRecord = {
      kind: "effect.settled",
      data: { pos: 1, to: "CONFIRMED", reason: "observed", value: 1 },
    };
    expect(await b.ask({ do: "write", records: [settled] })).toEqual({ say: "accepted" });

    const before = await contents(store, run);
    a.wake();
    const acts = [...lawful(journal), ...others];
    expect(new Set(acts.map(({ kind }) => kind))).toEqual(new Set(ownersKinds)); // a new kind must be tried here, too
    const refusals: Record<string, string> = {};
    for (const [k, record] of acts.entries()) {
      refusals[`${k} ${record.kind}`] = (await a.ask({ do: "write", records: [record] })).say;
      refusals[`${k} ${record.kind}, batch`] = (await a.ask({ do: "writeAsBatch", records: [record] })).say;
      refusals[`${k} ${record.kind}, at the head`] = (await a.ask({ do: "writeAtHead", records: [record] })).say;
    }
    refusals.several = (await a.ask({ do: "write", records: lawful(journal) })).say;
    refusals.renew = (await a.ask({ do: "renew" })).say;
    expect(refusals).toEqual(Object.fromEntries(Object.keys(refusals).map((act) => [act, "TAPE_FENCED"])));
    expect(Object.keys(refusals)).toHaveLength(3 * acts.length + 2);
    // Had it looked at its own clocks, it would not even have tried.
    expect((await a.ask({ do: "belief" })).say).toBe("TAPE_LEASE_LOST");
    expect((await a.ask({ do: "release" })).say).toBe("not told");
    expect(await contents(store, run)).toEqual(before);

    // The rightful owner is disturbed by nothing, and may write exactly what the other may not.
    for (const record of lawful(journal)) {
      expect([record.kind, (await b.ask({ do: "write", records: [record] })).say]).toEqual([record.kind, "accepted"]);
    }
    expect((await b.ask({ do: "belief" })).say).toBe("held");
    expect(await contents(store, run)).not.toEqual(before);
    expect(story(await store.read.terms(tenant, { run }))).toEqual([
      ["worker-a", "start", "expired"],
      ["worker-b", "recovery", undefined],
    ]);
    const written = await store.read.journal(tenant, { run });
    const tokens = written.map(({ token }) => token);
    expect(tokens).toEqual(tokens.toSorted((x, y) => Number(x - y)));
    expect(written.filter(({ token }) => token === 1n)).toHaveLength(1 + announced.length);
  });

  it("kill -9 of the holder: its standby leads when the lease has run out, not before", async (test) => {
    const { expect } = test;
    const { url, store } = await open(test);
    const ttlMs = 2_500; // long enough that a live holder on a busy machine does not lose it by itself
    const name = "sweeper";
    const [a, b] = await Promise.all([Actor.start("worker-a", url, test), Actor.start("worker-b", url, test)]);
    expect((await a.ask({ do: "lead", name, ttlMs })).say).toBe("held");
    b.say({ do: "lead", name, ttlMs: longMs });
    // It renews, so it is alive and well.
    const renewals = async () => (await store.read.lease(tenant, { name }))?.renewals ?? 0;
    while ((await renewals()) < 1) await systemClock.sleep(20);
    const now = await store.read.now();
    const view = await store.read.lease(tenant, { name });
    expect(view).toMatchObject({ state: "HELD", label: "worker-a" });
    a.kill();
    const heir = await b.hear();
    expect(heir).toMatchObject({ say: "held", token: "2", reason: "timeout" });
    const terms = await store.read.terms(tenant, { name });
    expect(story(terms)).toEqual([
      ["worker-a", "start", "expired"],
      ["worker-b", "timeout", undefined],
    ]);
    expect(terms[1]!.startedAt).toBeGreaterThanOrEqual(now + view!.remainingMs - 5); // clocks in whole milliseconds
    expect(await b.ask({ do: "release" })).toEqual({ say: "accepted" });
    expect((await store.read.lease(tenant, { name }))?.state).toBe("FREE");
  });
});
