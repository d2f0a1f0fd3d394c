import { expect, it, onTestFinished } from "vitest";
import { systemRandom } from "../../src/base/random.ts";
import { loadConfig } from "../../src/config/load.ts";
import { fileObjects } from "../../src/guard/file-objects.ts";
import { guardObject } from "../../src/guard/objects.ts";
import { identify } from "../../src/lease/identity.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost, outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { updateValue } from "../../src/store/values.ts";
import type { ManualClock } from "../../testkit/clock.ts";
import { project } from "../cli/sidecar.ts";
import { setStage, tenant } from "../host/stage.ts";
import { fixture, inline } from "./snippets.ts";

const hourMs = 3_600_000;
const by = { by: "ada", reason: "the upstream is back at noon" };

/** The settings of one reactor of a tape.yaml with this line. */
const settingsWith = (line: string) => {
  const cwd = project({ "tape.yaml": `tape:\n  reactors:\n    recovery: ${line}\n` });
  return loadConfig({ cwd, env: {} }).settings.tape.reactors.recovery!;
};

it("lease-ttl, heartbeat, takeover-backoff, lease-attempts: the defaults are as written, and settings", () => {
  expect(inline.get("takeover-backoff")).toContain("jittered exponential, 1–10 s");
  const defaults = { lease_ttl_s: 30, takeover: { base_ms: 1_000, cap_ms: 10_000 }, lease_attempts: "unlimited" };
  expect(settingsWith("{}")).toMatchObject(defaults);
  expect(settingsWith("{ lease_ttl_s: 60 }").heartbeat_s ?? 60 / 3).toBe(20);
  const slow =
    "{ lease_ttl_s: 45, heartbeat_s: 9, takeover: { base_ms: 500, cap_ms: 2000 }, lease_attempts: unlimited }";
  expect(settingsWith(slow)).toMatchObject({
    ...{ lease_ttl_s: 45, heartbeat_s: 9, lease_attempts: "unlimited" },
    takeover: { base_ms: 500, cap_ms: 2_000 },
  });
  expect(() => settingsWith("{ lease_attempts: 5 }")).toThrow("must be one of unlimited");
});

it("replica-id.rs: the override wins over the host name, and two starts are never one owner", () => {
  expect(fixture("replica-id.rs")).toContain('"OPENSHELL_REPLICA_ID"');
  const labelOf = (env: Record<string, string>) => identify(env, systemRandom).label;
  expect(labelOf({ HOSTNAME: "pod-1" })).toBe("pod-1");
  expect(labelOf({ OPENSHELL_REPLICA_ID: "gateway-3", HOSTNAME: "pod-1" })).toBe("gateway-3");
  expect(labelOf({ TAPE_REPLICA_ID: "r-7", OPENSHELL_REPLICA_ID: "gateway-3", HOSTNAME: "pod-1" })).toBe("r-7");
  const owners = [1, 2].map(() => identify({ HOSTNAME: "pod-1" }, systemRandom).owner);
  expect(owners[0]).not.toBe(owners[1]);
});

/** The clock of a machine whose time of day is wrong. */
const wrongClock = (clock: ManualClock, offMs: number) => ({
  mono: () => clock.mono(),
  wall: () => clock.wall() + offMs,
  boot: () => clock.boot(),
  after: (ms: number, fn: () => void) => clock.after(ms, fn),
  immediate: (fn: () => void) => clock.immediate(fn),
  sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
});

it("expiry: the store's clock alone ends a term, whatever a replica's clock says", async () => {
  expect(inline.get("expiry")).toBe("now_ms() - record.updated_at_ms >= TTL");
  const stage = await setStage();
  const a = await stage.app("a");
  const ahead = await stage.app("b", { clock: wrongClock(stage.clock, hourMs) });
  await a.leases.acquire("reconciler", { ttl: "30s", heartbeat: "10s" });
  await stage.clock.elapse(20_000);
  expect(await ahead.leases.stealExpired("reconciler")).toBeUndefined(); // by its own clock it expired long ago
  const { remainingMs } = (await ahead.leases.explain("reconciler"))!;
  expect(remainingMs).toBeGreaterThan(0);
  expect(remainingMs).toBeLessThanOrEqual(30_000);
  await a.close();
  const behind = await stage.app("c", { clock: wrongClock(stage.clock, -hourMs) });
  expect(await behind.leases.stealExpired("reconciler")).toBeUndefined();
  await stage.clock.elapse(30_001);
  expect(await behind.leases.stealExpired("reconciler")).toBeDefined(); // by its own clock it was taken in the future
});

it("read-modify-write: concurrent updates of a value and of an object lose nothing", async () => {
  expect(inline.get("read-modify-write")).toBe("update_message_cas");
  const { store, app } = await setStage();
  const increment = (value: unknown) => (typeof value === "number" ? value : 0) + 1;
  await Promise.all(Array.from({ length: 8 }, () => updateValue(store, tenant, "visits", increment)));
  expect((await store.read.value(tenant, "visits"))?.value).toBe(8);
  const objects = fileObjects(project({}));
  const { leases } = await app("a");
  const lease = await leases.acquire("sandboxes");
  const append = (body: string | undefined) => `${body ?? ""}x`;
  await Promise.all(Array.from({ length: 4 }, () => guardObject(objects, lease, "sandbox-7", append)));
  expect((await objects.get("sandbox-7"))?.body).toBe("xxxx");
});

it("timers: a gate's timeout and a redrive fire at their times", async () => {
  expect(inline.get("timers")).toBe("gate_timeout / redrive / reconcile");
  const stage = await setStage();
  const answer = gate<string>("answer");
  let isChanged = false;
  const ask = workflow("ask", async (tape) => {
    await tape.step(isChanged ? "other" : "first", () => 1);
    const first = await tape.gate(answer, { timeout: "10m" });
    await tape.gate(answer);
    return first.status;
  });
  const app = await stage.app("a", { runner: createRunner({ workflows: [ask] }), work: true });
  const listed = async () => (await app.timers.list({ run: "r" })).map(({ purpose, status }) => `${purpose} ${status}`);
  await app.start(ask, undefined, { id: "r" });
  await stage.clock.elapse(599_000);
  expect(await listed()).toEqual(["gate_timeout SET"]);
  await stage.clock.elapse(2_000);
  expect(await listed()).toEqual(["gate_timeout FIRED"]);
  isChanged = true; // its code: the run gets stuck
  await app.signal("r", answer, "late");
  await stage.clock.elapse(1_000);
  expect((await app.runs.get("r"))?.status).toBe("STUCK");
  isChanged = false;
  await app.redrive("r", { ...by, in: "10m" });
  await stage.clock.elapse(599_000);
  expect([await listed(), (await app.runs.get("r"))?.status]).toEqual([
    expect.arrayContaining(["redrive SET"]),
    "STUCK",
  ]);
  await stage.clock.elapse(2_000);
  expect(await (await app.run("r")).result()).toBe("timeout");
});

it("timers, long-pending: an effect is observed later on request, and before it is sent late", async () => {
  expect(inline.get("long-pending")).toContain("long-PENDING");
  const stage = await setStage();
  const calls: string[] = [];
  let isKnown = false;
  const wire = effect(
    "wire",
    (n: number) => {
      calls.push(`send ${n}`);
      throw new AckLost();
    },
    {
      ...{ semantics: "non_idempotent", dispatch: "outbox", businessKey: (n) => `invoice ${n}` },
      observe: (n) => {
        calls.push(`observe ${n}`);
        return isKnown ? outcome.confirmed("arrived") : outcome.inconclusive("not yet");
      },
    },
  );
  const pay = workflow("pay", async (_tape, n: number) => wire(n));
  const runner = createRunner({ workflows: [pay], effects: [wire] });
  const app = await stage.app("a", { runner, work: true });
  const first = await app.start(pay, 1, { id: "first" });
  await stage.clock.elapse(900_000);
  const [row] = await app.effects.list({ run: "first" });
  expect(row?.status).toBe("STUCK"); // the reconciler has given up
  isKnown = true;
  await app.resolve({ run: "first", pos: row!.pos, resolution: { as: "observe", in: "1h" }, ...by });
  await stage.clock.elapse(hourMs + 15_000);
  expect(await first.result()).toBe("arrived");
  // No outbox runs for a while: an operator pays by hand, and the reconciler finds out before it is sent.
  const closing = app.close();
  await stage.clock.elapse(60_000);
  await closing;
  calls.length = 0;
  const idle = await stage.app("b", { runner, work: true, reactors: { outbox: false, reconciler: false } });
  onTestFinished(() => idle.close());
  const second = await idle.start(pay, 2, { id: "second" });
  await stage.clock.elapse(700_000);
  expect(calls).toEqual([]);
  await stage.app("c", { runner, work: true, reactors: { reconciler: { pendingAfter: "10m" }, outbox: {} } });
  await stage.clock.elapse(30_000);
  expect([await second.result(), calls]).toEqual(["arrived", ["observe 2"]]);
});
