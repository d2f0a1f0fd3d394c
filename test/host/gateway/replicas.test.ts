import { beforeEach, describe, expect, inject, it } from "vitest";
import { Tape } from "../../../src/host/tape.ts";
import { dropDatabase, freshDatabase } from "../../postgres/database.ts";
import { noRunner } from "../stage.ts";
import { setWorld } from "./replicas.ts";

let url = "";
beforeEach(async () => {
  url = await freshDatabase(inject("postgres18"));
  return () => dropDatabase(url);
});

/** The cases of the design that need more than one process, on PostgreSQL. */
describe("three replicas of the gateway, each in its own process", { timeout: 900_000 }, () => {
  it("gated: any replica serves requests, only the holder watches and sweeps, and the others change nothing", async () => {
    const world = await setWorld(url);
    const { machines, replicas, served, patienceMs } = world;
    const patient = { timeout: patienceMs };
    const holder = await world.holder();
    const others = replicas.filter((replica) => replica !== holder);
    const [one, two] = others;
    expect(await one!.create("box")).toBe(201);
    expect(await two!.create("box")).toBe(409);
    for (const replica of replicas) expect(await replica.phase("box")).toBe("Provisioning");
    machines.report({ id: "box", condition: "ready", deleting: false });
    for (const replica of replicas) await expect.poll(() => replica.phase("box"), patient).toBe("Ready");
    expect(await two!.remove("box")).toBe(202);
    expect(await holder.phase("box")).toBe("Deleting");
    expect(world.watchersAndSweepers()).toEqual(new Set([holder.name]));
    expect(machines.watchers).toBe(1);
    expect(served.calls.filter(({ operation }) => operation === "create" || operation === "remove")).toEqual([
      { replica: one!.name, operation: "create", id: "box" },
      { replica: two!.name, operation: "remove", id: "box" },
    ]);
    // Every replica's health names the same holder and term.
    const health = await Promise.all(replicas.map((replica) => replica.health()));
    expect(new Set(health.map(({ holder: label, token }) => `${label} ${token}`))).toEqual(
      new Set([`${holder.name} 1`]),
    );
  });

  it("failover: after the holder is killed and its lease expires, another replica continues its work with a higher token", async () => {
    const world = await setWorld(url);
    const { machines, replicas, patienceMs, ttlMs } = world;
    const patient = { timeout: patienceMs };
    const dead = await world.holder();
    const survivors = replicas.filter((replica) => replica !== dead);
    await survivors[0]!.create("box");
    dead.kill();
    machines.report({ id: "box", condition: "failed", deleting: false }); // no replica watches at this moment
    expect(await survivors[1]!.phase("box")).toBe("Provisioning");
    expect(await survivors[1]!.create("another")).toBe(201); // requests do not wait for a reconciler
    const next = await world.holder(survivors);
    for (const replica of survivors) await expect.poll(() => replica.phase("box"), patient).toBe("Error");
    expect((await next.health()).token).toBe("2");
    await using app = await Tape.open({ store: url, runner: noRunner, work: false });
    const terms = await app.leases.history("reconciler");
    expect(terms.map(({ label, startReason, endReason }) => [label, startReason, endReason])).toEqual([
      [dead.name, "start", "expired"],
      [next.name, "timeout", undefined],
    ]);
    // Not before expiry. Leases use the monotonic clock but report wall-clock times, and that clock may be set in between.
    expect(terms[1]!.startedAt - terms[0]!.startedAt).toBeGreaterThan(ttlMs * 0.9);
  });

  it("graceful shutdown: SIGTERM drains and releases, a standby takes over long before the TTL or a poll", async () => {
    const world = await setWorld(url);
    const { machines, replicas, patienceMs, ttlMs } = world;
    const patient = { timeout: patienceMs };
    const leaving = await world.holder();
    const rest = replicas.filter((replica) => replica !== leaving);
    await rest[0]!.create("box");
    expect(await leaving.terminate()).toBe(0);
    machines.report({ id: "box", condition: "ready", deleting: false });
    await world.holder(rest);
    await expect.poll(() => rest[0]!.phase("box"), patient).toBe("Ready");
    await using app = await Tape.open({ store: url, runner: noRunner, work: false });
    const [first, second] = await app.leases.history("reconciler");
    expect([first!.endReason, second!.startReason]).toEqual(["drained", "release"]);
    expect(second!.startedAt - first!.endedAt!).toBeLessThan(ttlMs / 2); // by wake hint, not by expiry
    const events = leaving.lines
      .filter(({ replica }) => replica === leaving.name)
      .map(({ event, level }) => [event, level]);
    expect(events).toContainEqual(["singleton.acquired", "info"]);
    expect(events.at(-1)).toEqual(["singleton.released", "info"]);
  });

  it("a holder that is suspended past its TTL and resumes neither leads nor writes, and reports its loss", async () => {
    const world = await setWorld(url);
    const { machines, replicas, served, patienceMs } = world;
    const patient = { timeout: patienceMs };
    const stalled = await world.holder();
    const rest = replicas.filter((replica) => replica !== stalled);
    await rest[0]!.create("box");
    stalled.stop();
    const next = await world.holder(rest);
    machines.report({ id: "box", condition: "ready", deleting: false });
    await expect.poll(() => rest[0]!.phase("box"), patient).toBe("Ready");
    stalled.wake();
    await expect.poll(async () => (await stalled.health()).state, patient).toBe("standby");
    expect(stalled.lines.map(({ event }) => event)).toContain("singleton.lost");
    // It had an open stream of changes and a due sweep. Its abort signal ends both, and it makes no new call.
    const before = served.calls.length;
    await expect
      .poll(
        () =>
          served.calls.slice(before).filter(({ operation, replica }) => operation === "list" && replica === next.name)
            .length,
        patient,
      )
      .toBeGreaterThan(2);
    expect(served.calls.slice(before).filter(({ replica }) => replica === stalled.name)).toEqual([]);
    expect(await next.leads()).toBe(true);
  });

  it("an orphan is left alone for the grace period, then checked again, then pruned", async () => {
    const world = await setWorld(url, ["a"]);
    const { machines, replicas, served, patienceMs, graceMs } = world;
    const patient = { timeout: patienceMs };
    const [only] = replicas;
    await world.holder();
    await only!.create("kept");
    await only!.create("orphan");
    const startedAt = performance.now();
    machines.vanish("orphan"); // without a notification
    await expect.poll(() => only!.phase("orphan"), patient).toBe("Deleted");
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(graceMs - 500); // its record is as old as its creation
    expect(await only!.phase("kept")).toBe("Provisioning");
    // Not from the list alone: the replica requested this very machine from the backend right before.
    expect(served.calls.some(({ operation, id }) => operation === "get" && id === "orphan")).toBe(true);
  });
});
