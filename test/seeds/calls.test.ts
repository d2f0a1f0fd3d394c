import { describe, expect, it } from "vitest";
import { functionConnector } from "../../src/connector/function.ts";
import { runReactors } from "../../src/host/run-reactors.ts";
import type { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { AckLost, outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { record, step } from "../../testkit/conformance/frame.ts";
import { armed, begin, confirmed, decided } from "../../testkit/conformance/holder.ts";
import { setStage, tenant } from "../host/stage.ts";
import { fixture, inline } from "./snippets.ts";

/** The seed documents' calls in TypeScript. Each title names the snippet. */
describe("leases", () => {
  it("lease-tuple, takeover-state, reactor-lease: who holds it, for which reactor, how long, under which token", async () => {
    expect(inline.get("lease-tuple")).toContain("fencing_token");
    const stage = await setStage();
    const [a, b] = [await stage.app("a"), await stage.app("b")];
    const first = await a.leases.acquire("sweep", { ttl: "30s" });
    expect(await b.leases.explain("sweep")).toMatchObject({ token: first.token, reactor: "agent", ttlMs: 30_000 });
    await a.close();
    await stage.clock.elapse(30_001);
    const second = await b.leases.stealExpired("sweep", { ttl: "30s" });
    expect(second?.token).toBeGreaterThan(first.token);
    expect(await b.leases.explain("sweep")).toMatchObject({ token: second!.token, remainingMs: 30_000 });
  });

  it("fenced-writes, completion: every kind of write of a stale owner is rejected", async () => {
    expect(inline.get("fenced-writes")).toBe("AppendEvent, CompleteEffect, WriteValue");
    const { store } = await setStage();
    const stale = await begin(store);
    await store.claim.acquire("acme", {
      target: { run: stale.id },
      claimant: { owner: "o", label: "o", reactor: "recovery", ttlMs: 30_000 },
      nonce: 9n,
      expect: "any",
      reason: "manual",
      by: "ada",
      auditReason: "test",
    });
    const value = record("value.written", { key: "k", version: 1, value: 1 });
    const ended = record("run.ended", { status: "COMPLETED", outcome: 1, notesTaken: 0 });
    for (const write of [
      step(0),
      record("effect.settled", { pos: 0, to: "CONFIRMED", reason: "returned" }),
      value,
      ended,
    ]) {
      await expect(stale.write(write)).rejects.toMatchObject({ code: "TAPE_FENCED" });
    }
  });

  it("reconciler-lease.rs: the five calls of a lease", async () => {
    const methods = [...fixture("reconciler-lease.rs").matchAll(/async fn (\w+)/g)].map(([, name]) => name);
    expect(methods).toEqual(["try_acquire", "try_steal_expired", "acquire_or_steal", "renew", "release"]);
    const stage = await setStage();
    const { leases } = await stage.app("a");
    const lease = await leases.tryAcquire("reconciler-lease", { ttl: "30s" });
    const other = (await stage.app("b")).leases;
    expect(await other.tryAcquire("reconciler-lease")).toBeUndefined();
    expect(await other.stealExpired("reconciler-lease")).toBeUndefined();
    expect(await leases.renew(lease!)).toBe("held");
    expect(await leases.release(lease!)).toBe(true);
    const next = await other.acquireOrSteal("reconciler-lease");
    expect(next!.token).toBeGreaterThan(lease!.token);
  });

  it("spawn-watchers.rs, lease-times, shutdown: loops that one replica runs, with 30 s, 10 s and 5 s", async () => {
    const stage = await setStage();
    const running: string[] = [];
    const loops = (label: string) => {
      const loop =
        (name: string) =>
        async ({ abortSignal }: { abortSignal: AbortSignal }) => {
          running.push(`${label} ${name}`);
          await new Promise((resolve) => abortSignal.addEventListener("abort", resolve));
          running.splice(running.indexOf(`${label} ${name}`), 1);
        };
      return { watch: loop("watch"), reconcile: loop("reconcile") };
    };
    const [a, b] = [await stage.app("a"), await stage.app("b")];
    const first = await a.singleton("reconciler", loops("a"));
    await stage.clock.elapse(10);
    const second = await b.singleton("reconciler", loops("b"));
    await stage.clock.elapse(60_000);
    expect([running.toSorted(), first.state, second.state]).toEqual([["a reconcile", "a watch"], "holder", "standby"]);
    expect(await a.leases.explain("reconciler")).toMatchObject({ ttlMs: 30_000 });
    const stopping = first.stop();
    await stage.clock.elapse(10);
    await stopping;
    expect([running.toSorted(), second.state]).toEqual([["b reconcile", "b watch"], "holder"]);
  });

  it("spawn-watchers.rs: on a store of one process the loops start without a lease's delay", async () => {
    expect(fixture("spawn-watchers.rs")).toContain("is_single_replica()");
    const stage = await setStage({ exclusive: true });
    let isRunning = false;
    await (await stage.app("a")).singleton("reconciler", async ({ abortSignal }) => {
      isRunning = true;
      await new Promise((resolve) => abortSignal.addEventListener("abort", resolve));
    });
    await stage.clock.elapse(1);
    expect(isRunning).toBe(true);
  });

  it("object-store.rs, payload.txt: put_if, delete_if and get with versions", async () => {
    expect(fixture("object-store.rs").match(/put_if|delete_if|get/g)).toHaveLength(4);
    const { intake, read } = (await setStage()).store;
    const conflict = { code: "TAPE_VERSION_CONFLICT" };
    const created = await intake.putValue(tenant, "lease", { holder: "a" }, "must_create");
    await expect(intake.putValue(tenant, "lease", { holder: "b" }, "must_create")).rejects.toMatchObject(conflict);
    const renewed = await intake.putValue(tenant, "lease", { holder: "a" }, { version: created.version });
    expect((await read.value(tenant, "lease"))?.version).toBe(renewed.version);
    await expect(intake.deleteValue(tenant, "lease", created.version)).rejects.toMatchObject(conflict);
    await intake.deleteValue(tenant, "lease", renewed.version);
    expect((await read.value(tenant, "lease"))?.value ?? null).toBeNull();
  });
});

describe("reactors", () => {
  it("status-check, observe, dispatch, outbox, compensate: a connector behind the outbox", async () => {
    const stage = await setStage();
    const calls: string[] = [];
    const bank = functionConnector("bank", {
      dispatch: (_args: unknown, { key }) => {
        calls.push(`dispatch ${key}`);
        throw new AckLost();
      },
      observe: (_args, { key }) => {
        calls.push(`observe ${key}`);
        return outcome.confirmed("arrived");
      },
      compensate: (_args, _result, { key }) => void calls.push(`compensate ${key}`),
    });
    const options = { connector: "bank", dispatch: "outbox", businessKey: () => "invoice-7" } as const;
    const wire = effect<unknown, string>("wire", options);
    const pay = workflow("pay", async () => {
      await wire({ eur: 5 });
      throw new Error("the order was withdrawn");
    });
    const runner = createRunner({ workflows: [pay], effects: [wire], connectors: [bank] });
    const app = await stage.app("a", { runner, work: true });
    await app.start(pay, undefined, { id: "r" });
    await stage.clock.elapse(60_000);
    expect(calls.map((call) => call.split(" ")[0])).toEqual(["dispatch", "observe", "compensate"]);
    expect((await app.runs.get("r"))?.status).toBe("COMPENSATED");
  });

  it("reap.py: a reactor over obligations that are due for a day", async () => {
    expect(fixture("reap.py")).toContain('client.list_obligations(min_age_hours=age_hours, status="PENDING")');
    const stage = await setStage();
    const run = await begin(stage.store);
    await run.write(...confirmed(0), armed(0, { name: "wire" }));
    await run.write(decided("failed"), record("run.compensating", {}));
    const app = await stage.app("a", { tenant: "acme" });
    const reaped: string[] = [];
    const handler = async (own: Tape): Promise<void> => {
      for (const owed of await own.obligations.list({ status: "PENDING", minAge: "24h" })) reaped.push(owed.run);
    };
    const reactors = await runReactors(app, {
      only: ["reap_aged_obligations"],
      reactors: { reap_aged_obligations: { handler, interval: "1h" } },
      clock: stage.clock,
      log: "silent",
    });
    await stage.clock.elapse(23 * 3_600_000);
    expect(reaped).toEqual([]);
    await stage.clock.elapse(3_600_000);
    expect(reaped).toEqual([run.id]);
    const stopping = reactors.stop();
    await stage.clock.elapse(60_000);
    await stopping;
  });
});
