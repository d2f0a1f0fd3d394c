import { describe, it, type TestContext } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { TermView } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { Child } from "./child-process.ts";
import { legalRecords, otherRecords, ownerKinds } from "./effects.ts";

const tenant = "default";
/** TTL of the successor: long enough that a busy machine does not lose the lease. */
const longMs = 60_000;

export interface World {
  readonly url: string;
  readonly store: Store;
  /** TTL of the zombie: as short as the store allows, because the test waits for its expiry. */
  readonly ttlMs: number;
}

/** Everything that a rejected write might have changed, without the lease, which its holder renews. */
async function contents(store: Store, run: string): Promise<unknown> {
  const { read } = store;
  // By journal: the feed waits for open transactions, also for those of other tests on the same server.
  const [journal, inbox] = [await read.journal(tenant, { run }), await read.journal(tenant, { run }, { inbox: true })];
  const { lease: _lease, ...row } = (await read.run(tenant, run))!;
  // Stored by the steady clock and returned as wall time: a millisecond of difference is no change.
  const effects = (await read.effects(tenant)).map(({ sendUntil: _until, ...effect }) => effect);
  const tables = [effects, read.gates(tenant), read.timers(tenant), read.budgets(tenant, run), read.values(tenant, "")];
  return { journal, inbox, row, runs: (await read.runs(tenant)).length, tables: await Promise.all(tables) };
}

async function untilExpired(store: Store, target: { run: string } | { name: string }): Promise<void> {
  while ((await store.read.lease(tenant, target))?.state !== "EXPIRED") await systemClock.sleep(20);
}

const history = (terms: readonly TermView[]) =>
  terms.map(({ label, startReason, endReason }) => [label, startReason, endReason]);

/** Two real processes on one store, of which one is stopped or killed. */
export function zombieCases(name: string, open: (test: TestContext) => Promise<World>): void {
  // Concurrent, because most of the time they wait for a lease to expire.
  describe.concurrent(`two processes on ${name}`, () => {
    it("a worker that was stopped, replaced and woken cannot write a record of any kind", async (test) => {
      const { expect } = test;
      const { url, store, ttlMs } = await open(test);
      const run = "payment";
      await store.intake.createRuns(tenant, [{ id: run, workflow: "w", input: 1, budget: { usd: 1_000_000 } }]);
      const [a, b] = await Promise.all([Child.start("worker-a", url, test), Child.start("worker-b", url, test)]);
      const { journal = 0, ...first } = await a.request({ do: "take", run, ttlMs });
      expect(first).toEqual({ result: "held", token: "1", reason: "start" });
      // In the middle of an effect: the attempt is recorded, and the process is stopped before it sends.
      const semantics = { semantics: "idempotent", dispatch: "inline", args: 1, argsHash: "h" } as const;
      const announced: NewRecord[] = [
        { kind: "step.done", data: { pos: 0, name: "reserve", value: "done" } },
        { kind: "effect.intended", data: { pos: 1, name: "wire", key: "k", ...semantics } },
        { kind: "effect.dispatched", data: { pos: 1, attempt: 1, sendWithinMs: 1_000 } },
      ];
      for (const record of announced)
        expect(await a.request({ do: "write", records: [record] })).toEqual({ result: "accepted" });
      a.pause();
      await untilExpired(store, { run });

      const second = await b.request({ do: "take", run, ttlMs: longMs });
      expect(second).toEqual({ result: "held", token: "2", reason: "recovery", journal });
      const settled: NewRecord = {
        kind: "effect.settled",
        data: { pos: 1, to: "CONFIRMED", reason: "observed", value: 1 },
      };
      expect(await b.request({ do: "write", records: [settled] })).toEqual({ result: "accepted" });

      const before = await contents(store, run);
      a.wake();
      const attempted = [...legalRecords(journal), ...otherRecords];
      expect(new Set(attempted.map(({ kind }) => kind))).toEqual(new Set(ownerKinds)); // a new kind must be added here
      const results: Record<string, string> = {};
      for (const [k, record] of attempted.entries()) {
        results[`${k} ${record.kind}`] = (await a.request({ do: "write", records: [record] })).result;
        results[`${k} ${record.kind}, batch`] = (await a.request({ do: "writeAsBatch", records: [record] })).result;
        results[`${k} ${record.kind}, at the head`] = (
          await a.request({ do: "writeAtHead", records: [record] })
        ).result;
      }
      results.several = (await a.request({ do: "write", records: legalRecords(journal) })).result;
      results.renew = (await a.request({ do: "renew" })).result;
      expect(results).toEqual(Object.fromEntries(Object.keys(results).map((write) => [write, "TAPE_FENCED"])));
      expect(Object.keys(results)).toHaveLength(3 * attempted.length + 2);
      // By its own clock it would not even have tried.
      expect((await a.request({ do: "belief" })).result).toBe("TAPE_LEASE_LOST");
      expect((await a.request({ do: "release" })).result).toBe("not acknowledged");
      expect(await contents(store, run)).toEqual(before);

      // The rightful owner is not disturbed, and may write exactly what the other may not.
      for (const record of legalRecords(journal)) {
        expect([record.kind, (await b.request({ do: "write", records: [record] })).result]).toEqual([
          record.kind,
          "accepted",
        ]);
      }
      expect((await b.request({ do: "belief" })).result).toBe("held");
      expect(await contents(store, run)).not.toEqual(before);
      expect(history(await store.read.terms(tenant, { run }))).toEqual([
        ["worker-a", "start", "expired"],
        ["worker-b", "recovery", undefined],
      ]);
      const written = await store.read.journal(tenant, { run });
      const tokens = written.map(({ token }) => token);
      expect(tokens).toEqual(tokens.toSorted((x, y) => Number(x - y)));
      expect(written.filter(({ token }) => token === 1n)).toHaveLength(1 + announced.length);
    });

    it("after kill -9 of the holder its standby takes over when the lease expires, not before", async (test) => {
      const { expect } = test;
      const { url, store, ttlMs: shortest } = await open(test);
      const ttlMs = Math.max(2_500, shortest); // long enough that a live holder on a busy machine does not lose it
      const name = "sweeper";
      const [a, b] = await Promise.all([Child.start("worker-a", url, test), Child.start("worker-b", url, test)]);
      expect((await a.request({ do: "lead", name, ttlMs })).result).toBe("held");
      b.send({ do: "lead", name, ttlMs: longMs });
      // It renews, so it is alive.
      const renewals = async () => (await store.read.lease(tenant, { name }))?.renewals ?? 0;
      while ((await renewals()) < 1) await systemClock.sleep(20);
      const now = await store.read.now();
      const view = await store.read.lease(tenant, { name });
      expect(view).toMatchObject({ state: "HELD", label: "worker-a" });
      a.kill();
      const successor = await b.receive();
      expect(successor).toMatchObject({ result: "held", token: "2", reason: "timeout" });
      const terms = await store.read.terms(tenant, { name });
      expect(history(terms)).toEqual([
        ["worker-a", "start", "expired"],
        ["worker-b", "timeout", undefined],
      ]);
      expect(terms[1]!.startedAt).toBeGreaterThanOrEqual(now + view!.remainingMs - 5); // clocks are in whole milliseconds
      expect(await b.request({ do: "release" })).toEqual({ result: "accepted" });
      expect((await store.read.lease(tenant, { name }))?.state).toBe("FREE");
    });
  });
}
