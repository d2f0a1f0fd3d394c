import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { MemoryBackend } from "../../../examples/sandbox-gateway/backend.ts";
import { Gateway, leaseName } from "../../../examples/sandbox-gateway/gateway.ts";
import { next, type Phase, table, triggerOf } from "../../../examples/sandbox-gateway/phases.ts";
import { apply, sweepOnce } from "../../../examples/sandbox-gateway/reconciler.ts";
import { postgresSandboxes, type Sandboxes, sqliteSandboxes } from "../../../examples/sandbox-gateway/sandboxes.ts";
import { Tape } from "../../../src/host/tape.ts";
import type { Lease } from "../../../src/lease/lease.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { ManualClock } from "../../../testkit/clock.ts";
import { dropDatabase, freshDatabase } from "../../postgres/database.ts";
import { noRunner } from "../stage.ts";

const folderOf = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "tape-gateway-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
};
const database = async (): Promise<string> => {
  const url = await freshDatabase(inject("postgres18"));
  onTestFinished(() => dropDatabase(url));
  return url;
};
const openApp = async (store: string): Promise<Tape> => {
  const app = await Tape.open({ store, runner: noRunner, work: false });
  onTestFinished(() => app.close());
  return app;
};
const termOf = (lease: Lease) => ({
  name: lease.name,
  tenant: lease.tenant,
  token: lease.token,
  fence: lease.fence,
  assert: () => lease.assert(),
  abortSignal: lease.abortSignal,
});

describe("the phase table", () => {
  const phases: Phase[] = ["Provisioning", "Ready", "Error", "Deleting", "Deleted"];

  it("matches the design, for every phase and every trigger", () => {
    const expected: Record<string, (Phase | undefined)[]> = {
      ready: ["Ready", undefined, undefined, undefined, undefined],
      failed: ["Error", undefined, undefined, undefined, undefined],
      deleting: ["Deleting", "Deleting", "Deleting", undefined, undefined],
      gone: ["Deleted", "Deleted", "Deleted", "Deleted", undefined],
    };
    for (const { trigger } of table) expect(phases.map((phase) => next(phase, trigger))).toEqual(expected[trigger]);
    expect(phases.map((phase) => next(phase, undefined))).toEqual(phases.map(() => undefined));
  });

  it("deleting wins over every condition", () => {
    expect(triggerOf({ id: "a", condition: "ready", deleting: true })).toBe("deleting");
    expect(triggerOf({ id: "a", condition: "failed", deleting: false })).toBe("failed");
    expect(triggerOf({ id: "a", condition: "starting", deleting: false })).toBeUndefined();
  });
});

describe.each(["postgres", "sqlite"] as const)("the lease on %s", (backend) => {
  const storeOf = async (): Promise<string> =>
    backend === "postgres" ? database() : `sqlite:${join(await folderOf(), "tape.db")}`;

  it("acquisition: of ten concurrent attempts exactly one succeeds, and the others learn that they failed", async () => {
    const store = await storeOf();
    const apps = await Promise.all([openApp(store), openApp(store)]);
    const answers = await Promise.all(Array.from({ length: 10 }, (_, k) => apps[k % 2]!.leases.tryAcquire(leaseName)));
    const won = answers.filter((lease) => lease !== undefined);
    expect(won).toHaveLength(1);
    expect((await apps[0]!.leases.history(leaseName)).map(({ token }) => token)).toEqual([won[0]!.token]);
  });
});

describe("renewal and expiry: a renewal extends, an active lease cannot be stolen, an expired lease can", () => {
  it("on PostgreSQL, by its clock", async () => {
    // The bound is below the TTL, otherwise the TTL would be refused.
    const store = `${await database()}?transaction_bound_ms=200`;
    const [a, b] = [await openApp(store), await openApp(store)];
    const remaining = async () => (await b.leases.explain(leaseName))!.remainingMs;
    const lease = await a.leases.acquire(leaseName, { ttl: "60s" });
    await expect.poll(remaining, { timeout: 10_000 }).toBeLessThan(59_000);
    const low = await remaining();
    expect(await lease.renew()).toBe("held");
    expect(await remaining()).toBeGreaterThan(low);
    expect(await b.leases.stealExpired(leaseName)).toBeUndefined();
    expect(await b.leases.acquireOrSteal(leaseName)).toBeUndefined();

    await lease.release();
    await a.leases.acquire(leaseName, { ttl: "600ms" });
    await a.close(); // stops renewing, without a release
    let stolen: Lease | undefined;
    await expect
      .poll(
        async () => {
          stolen = await b.leases.stealExpired(leaseName);
          return stolen;
        },
        { timeout: 10_000 },
      )
      .toBeDefined();
    expect([stolen!.token, stolen!.term.reason]).toEqual([4n, "timeout"]);
  });

  it("on SQLite, to the millisecond", async () => {
    const clock = new ManualClock();
    const file = join(await folderOf(), "tape.db");
    const stores = await Promise.all([openSqlite({ file, clock }), openSqlite({ file, clock })]);
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
    const [a, b] = await Promise.all(
      stores.map((store) => Tape.open({ store, runner: noRunner, work: false, clock, leaseTtl: "30s" })),
    );
    const lease = await a!.leases.acquire(leaseName);
    await clock.elapse(9_000);
    expect((await b!.leases.explain(leaseName))!.remainingMs).toBe(21_000);
    expect(await lease.renew()).toBe("held");
    expect((await b!.leases.explain(leaseName))!.remainingMs).toBe(30_000);
    await a!.close();
    await clock.elapse(29_999);
    expect(await b!.leases.stealExpired(leaseName)).toBeUndefined();
    await clock.elapse(1);
    const stolen = await b!.leases.stealExpired(leaseName);
    expect([stolen!.token, stolen!.term.reason]).toEqual([2n, "timeout"]);
    await b!.close();
  });
});

describe("renewal loss during a mutation: exactly one write succeeds", () => {
  /** The old holder reads and is delayed; the new holder reads and writes; the old holder then writes its decision. */
  async function raceOn(store: string, sandboxes: Sandboxes): Promise<void> {
    const [first, second] = [await openApp(store), await openApp(store)];
    const machines = new MemoryBackend();
    await machines.create("box");
    await sandboxes.create("box");
    const options = { backend: machines, sandboxes, sweepEveryMs: 1_000, graceMs: 1_000 };
    const [reached, resume] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow: Sandboxes = {
      ...sandboxes,
      async change(...args) {
        reached.resolve();
        await resume.promise;
        return sandboxes.change(...args);
      },
    };
    const old = await first.leases.acquire(leaseName);
    const failed = { id: "box", condition: "failed", deleting: false } as const;
    const stale = apply({ ...options, sandboxes: slow }, termOf(old), failed).catch(
      (error: { code: string }) => error.code,
    );
    await reached.promise; // it has asserted its lease and is about to write
    const current = await second.leases.takeover(leaseName, { reason: "test" });
    machines.report({ id: "box", condition: "ready", deleting: false });
    expect(await sweepOnce(options, termOf(current))).toEqual({ changed: 1 });
    resume.resolve();
    expect(await stale).toBe("TAPE_FENCED");
    expect(await sandboxes.get("box")).toMatchObject({ phase: "Ready", version: 2 });
  }

  it("on PostgreSQL", async () => {
    const url = await database();
    const sandboxes = await postgresSandboxes(url);
    onTestFinished(() => sandboxes.close());
    await raceOn(url, sandboxes);
  });

  it("on SQLite", async () => {
    const folder = await folderOf();
    const sandboxes = sqliteSandboxes(join(folder, "sandboxes.db"));
    onTestFinished(() => sandboxes.close());
    await raceOn(`sqlite:${join(folder, "tape.db")}`, sandboxes);
  });

  it("on PostgreSQL also before the first write of the new holder, which a comparison of versions alone would accept", async () => {
    const url = await database();
    const sandboxes = await postgresSandboxes(url);
    onTestFinished(() => sandboxes.close());
    const [first, second] = [await openApp(url), await openApp(url)];
    await sandboxes.create("box");
    const old = await first.leases.acquire(leaseName);
    await second.leases.takeover(leaseName, { reason: "test" });
    const box = (await sandboxes.get("box"))!;
    await expect(sandboxes.change(box, "Error", old)).rejects.toThrow("TAPE_FENCED");
    expect(await sandboxes.change(box, "Deleting")).toBe(true); // a request, by any replica
    expect(await sandboxes.change(box, "Ready")).toBe(false); // and the version separates requests
  });
});

describe("the sweep", () => {
  it("checks again before it prunes: a sandbox that is back, or that a request changed, is left alone", async () => {
    const url = await database();
    const sandboxes = await postgresSandboxes(url);
    onTestFinished(() => sandboxes.close());
    const app = await openApp(url);
    const term = termOf(await app.leases.acquire(leaseName));
    const machines = new MemoryBackend();
    for (const id of ["back", "changed", "gone", "young"]) await sandboxes.create(id);
    const late = new MemoryBackend(); // the state of the machines a moment after the list was read
    late.report({ id: "back", condition: "ready", deleting: false });
    const backend = {
      list: () => machines.list(),
      create: machines.create.bind(machines),
      remove: machines.remove.bind(machines),
      watch: machines.watch.bind(machines),
      async get(id: string) {
        if (id === "changed") await sandboxes.change((await sandboxes.get(id))!, "Deleting"); // a request meanwhile
        return late.get(id);
      },
    };
    const aged: Sandboxes = {
      ...sandboxes,
      list: async () => (await sandboxes.list()).map((box) => ({ ...box, ageMs: box.id === "young" ? 999 : 1_000 })),
    };
    const options = { backend, sandboxes: aged, sweepEveryMs: 1_000, graceMs: 1_000 };
    expect(await sweepOnce(options, term)).toEqual({ changed: 2 });
    const phases = Object.fromEntries((await sandboxes.list()).map(({ id, phase }) => [id, phase]));
    expect(phases).toEqual({ back: "Ready", changed: "Deleting", gone: "Deleted", young: "Provisioning" });
  });
});

it("single-replica mode: an exclusive SQLite file, no standby and no renewal, also right after a crash", async () => {
  const folder = await folderOf();
  const store = `sqlite:${join(folder, "tape.db")}?processes=single`;
  {
    // A process that died holding the lease, with most of the TTL left.
    const app = await Tape.open({ store: `sqlite:${join(folder, "tape.db")}`, runner: noRunner, work: false });
    await app.leases.acquire(leaseName, { ttl: "60s" });
    await app.close();
  }
  const machines = new MemoryBackend();
  const lines: string[] = [];
  const gateway = await Gateway.open({
    store,
    runner: noRunner,
    log: (_level, event) => void lines.push(event),
    sandboxes: sqliteSandboxes(join(folder, "sandboxes.db")),
    backend: machines,
    ttl: "30s",
    sweepEveryMs: 50,
    graceMs: 60_000,
  });
  await fetch(`${gateway.url}/sandboxes/box`, { method: "POST" });
  machines.report({ id: "box", condition: "ready", deleting: false });
  const phase = async () => ((await (await fetch(`${gateway.url}/sandboxes/box`)).json()) as { phase: string }).phase;
  await expect.poll(phase, { timeout: 10_000 }).toBe("Ready");
  expect(gateway.reconciler.view()).toMatchObject({ state: "holder", token: 2n });
  await gateway.close();
  expect(lines).not.toContain("lease.standby");
  expect(lines).not.toContain("singleton.standby");
  expect(lines).not.toContain("singleton.renewed");
  expect(lines).toContain("singleton.released");
});
