import { openStore } from "durable-tape";
import { createWorld } from "durable-tape/world";
import { expect, onTestFinished } from "vitest";
import { failingAt } from "./events.ts";
import { type Cases, newTenant, open } from "./places.ts";
import { allEvents, hookCreated, refusals, runCompleted, startRun } from "./runs.ts";

/** Tokens of hooks. */
export function hooks({ it, place }: Cases): void {
  it("have different tokens, whichever processes create them", async () => {
    const tenant = newTenant();
    const worlds = [open(place, tenant), open(place, tenant)];
    for (let k = 0; k < 8; k++) {
      const runs = await Promise.all(worlds.map((world) => startRun(world)));
      const results = await Promise.all(
        worlds.map((world, w) => world.events.create(runs[w]!, hookCreated(`hook_${k}_${w}`, `token-${k}`))),
      );
      const types = results.map(({ event }) => event!.eventType);
      expect([...types].sort()).toEqual(["hook_conflict", "hook_created"]);
      const winner = types.indexOf("hook_created");
      const conflict = results[1 - winner]!.event!;
      expect(conflict).toMatchObject({ eventData: { token: `token-${k}`, conflictingRunId: runs[winner] } });
      for (const world of worlds) {
        expect(await world.hooks.getByToken(`token-${k}`)).toMatchObject({
          hookId: `hook_${k}_${winner}`,
          runId: runs[winner],
        });
      }
    }
  });

  it("free their token when they are disposed, or their run ends", async () => {
    const tenant = newTenant();
    const [one, other] = [open(place, tenant), open(place, tenant)];
    const runs = [await startRun(one), await startRun(one), await startRun(other)];
    await one.events.create(runs[0]!, hookCreated("hook_a", "token"));
    await one.events.create(runs[0]!, { eventType: "hook_disposed", correlationId: "hook_a" });
    await expect(other.hooks.getByToken("token")).rejects.toMatchObject({ name: "HookNotFoundError" });
    const second = await other.events.create(runs[1]!, hookCreated("hook_b", "token"));
    expect(second.hook).toMatchObject({ hookId: "hook_b", token: "token" });
    // A hook that is disposed is not created again: its token belongs to another.
    await expect(one.events.create(runs[0]!, hookCreated("hook_a", "token"))).rejects.toMatchObject({
      name: "EntityConflictError",
    });
    await other.events.create(runs[1]!, runCompleted);
    const received = {
      eventType: "hook_received" as const,
      correlationId: "hook_b",
      eventData: { payload: new Uint8Array() },
    };
    await expect(one.events.create(runs[1]!, received)).rejects.toMatchObject({ name: "HookNotFoundError" });
    await one.events.create(runs[2]!, hookCreated("hook_c", "token"));
    expect((await one.hooks.list({})).data.map(({ hookId }) => hookId)).toEqual(["hook_c"]);
    expect((await one.hooks.get("hook_c")).runId).toBe(runs[2]);
  });

  it("take no value after they are disposed", async () => {
    const tenant = newTenant();
    const [one, other] = [open(place, tenant), open(place, tenant)];
    const run = await startRun(one);
    for (let k = 0; k < 8; k++) {
      const correlationId = `hook_${k}`;
      await one.events.create(run, hookCreated(correlationId, `token-${k}`));
      const received = {
        eventType: "hook_received" as const,
        correlationId,
        eventData: { payload: new Uint8Array(1) },
      };
      await Promise.allSettled([
        other.events.create(run, received),
        one.events.create(run, { eventType: "hook_disposed", correlationId }),
        other.events.create(run, received),
      ]);
      const types = (await allEvents(one, run))
        .filter((event) => event.correlationId === correlationId)
        .map(({ eventType }) => eventType);
      expect(types.at(-1)).toBe("hook_disposed");
    }
  });

  it("keep their token through a crash between claim and event", async () => {
    const tenant = newTenant();
    const world = open(place, tenant);
    const runs = [await startRun(world), await startRun(world)];
    const store = await openStore(place.url());
    onTestFinished(() => store.close());
    const broken = createWorld({
      store: failingAt(store, `workflow/event/${runs[0]}`, "must_create"),
      tenant,
      log: "silent",
    });
    await expect(broken.events.create(runs[0]!, hookCreated("hook_a", "token"))).rejects.toThrow("died here");
    const [theirs] = await Promise.allSettled([world.events.create(runs[1]!, hookCreated("hook_b", "token"))]);
    expect(refusals([theirs!])).toEqual([""]);
    expect(theirs).toMatchObject({ value: { event: { eventType: "hook_conflict" } } });
    const again = await world.events.create(runs[0]!, hookCreated("hook_a", "token"));
    expect(again.hook).toMatchObject({ hookId: "hook_a" });
    expect((await world.hooks.getByToken("token")).runId).toBe(runs[0]);
  });
}
