import { openStore, type Store } from "durable-tape";
import { createWorld } from "durable-tape/world";
import { expect, onTestFinished } from "vitest";
import { type Cases, newTenant, open } from "./places.ts";
import {
  allEvents,
  hookCreated,
  lazyStart,
  newRunId,
  payload,
  refusals,
  runCompleted,
  runData,
  startRun,
  stepCompleted,
  stepCreated,
} from "./runs.ts";

/** The logs of runs. */
export function events({ it, place }: Cases): void {
  it("have one order, however many processes append to a run", async () => {
    const tenant = newTenant();
    const worlds = [open(place, tenant), open(place, tenant), open(place, tenant)];
    const run = await startRun(worlds[0]!);
    const calls = worlds.flatMap((world, w) =>
      Array.from({ length: 20 }, (_, k) => world.events.create(run, stepCreated(`step_${w}_${k}`))),
    );
    const results = await Promise.all(calls);
    const found = await Promise.all(worlds.map((world) => allEvents(world, run)));
    const ids = found[0]!.map(({ eventId }) => eventId);
    expect(ids).toHaveLength(62);
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(ids).size).toBe(62);
    for (const other of found) expect(other).toEqual(found[0]);
    expect(results.map(({ event }) => event!.eventId).every((id) => ids.includes(id))).toBe(true);
    // Each process sees its own in the order of its calls.
    for (const w of [0, 1, 2]) {
      const own = found[0]!.flatMap(({ correlationId = "" }) =>
        correlationId.startsWith(`step_${w}_`) ? [correlationId] : [],
      );
      expect(own).toEqual(Array.from({ length: 20 }, (_, k) => `step_${w}_${k}`));
    }
  });

  it("let one of several processes create a step", async () => {
    const tenant = newTenant();
    const worlds = [open(place, tenant), open(place, tenant)];
    const run = await startRun(worlds[0]!);
    for (let k = 0; k < 10; k++) {
      const results = await Promise.allSettled(worlds.map((world) => world.events.create(run, lazyStart(`step_${k}`))));
      expect(refusals(results).sort()).toEqual(["", "EntityConflictError"]);
      const won = results.find((result) => result.status === "fulfilled")!;
      expect(won.value).toMatchObject({ stepCreated: true, step: { status: "running", attempt: 1 } });
    }
    const types = (await allEvents(worlds[1]!, run)).slice(2).map(({ eventType }) => eventType);
    expect(types).toEqual(Array.from({ length: 10 }, () => ["step_created", "step_started"]).flat());
  });

  it("end a step once, and no step of a process that is behind", async () => {
    const tenant = newTenant();
    const [one, other] = [open(place, tenant), open(place, tenant)];
    const run = await startRun(one);
    await one.events.create(run, lazyStart("step_a"));
    expect((await other.steps.get(run, "step_a")).status).toBe("running");
    await one.events.create(run, stepCompleted("step_a", "first"));
    // The other process still believes that the step runs.
    await expect(other.events.create(run, stepCompleted("step_a", "second"))).rejects.toThrow("has ended");
    expect((await other.steps.get(run, "step_a")).output).toEqual(payload("first"));
    // Nor does it know of a step that another has started since.
    await one.events.create(run, lazyStart("step_c"));
    expect((await other.events.create(run, stepCompleted("step_c"))).step?.status).toBe("completed");
    await one.events.create(run, runCompleted);
    await expect(other.events.create(run, lazyStart("step_b"))).rejects.toThrow("takes no new step");
    await expect(other.events.create(run, { eventType: "run_started" })).rejects.toMatchObject({
      name: "RunExpiredError",
    });
    expect((await other.runs.get(run)).status).toBe("completed");
  });

  it("are listed in pages, from any place, in both directions", async () => {
    const world = open(place, newTenant());
    const run = await startRun(world);
    for (let k = 0; k < 6; k++) await world.events.create(run, lazyStart(`step_${k}`));
    const all = await allEvents(world, run, 1_000);
    expect(all).toHaveLength(14);
    for (const limit of [1, 2, 3, 5, 13, 14]) {
      expect(await allEvents(world, run, limit)).toEqual(all);
      const page = await world.events.list({ runId: run, pagination: { limit, sortOrder: "desc" } });
      expect(page.data).toEqual([...all].reverse().slice(0, limit));
      const next = await world.events.list({
        runId: run,
        pagination: { limit, sortOrder: "desc", cursor: page.cursor! },
      });
      expect(next.data).toEqual([...all].reverse().slice(limit, 2 * limit));
    }
    for (const event of all) expect(await world.events.get(run, event.eventId)).toEqual(event);
    await expect(world.events.get(run, `${all[0]!.eventId.slice(0, -1)}_`)).rejects.toThrow("not found");
    const found = await world.events.listByCorrelationId({ correlationId: "step_3" });
    expect(found.data).toEqual(all.filter(({ correlationId }) => correlationId === "step_3"));
    const { data } = await world.steps.list({ runId: run, pagination: { limit: 2 }, resolveData: "none" });
    expect(data.map(({ stepId, input }) => [stepId, input])).toEqual([
      ["step_5", undefined],
      ["step_4", undefined],
    ]);
  });

  it("answer with what came since a cursor", async () => {
    const world = open(place, newTenant());
    const run = await startRun(world);
    const { cursor } = await world.events.list({ runId: run });
    await world.events.create(run, lazyStart("step_a"));
    const result = await world.events.create(run, stepCompleted("step_a"), { sinceCursor: cursor! });
    expect(result.events?.map(({ eventType }) => eventType)).toEqual([
      "step_created",
      "step_started",
      "step_completed",
    ]);
    expect(await world.events.list({ runId: run, pagination: { cursor: result.cursor! } })).toMatchObject({
      data: [],
      hasMore: false,
    });
  });

  it("create the run of a message whose sender died before it did", async () => {
    const world = open(place, newTenant());
    const run = newRunId();
    const started = { eventType: "run_started" as const, specVersion: 5, eventData: runData };
    const results = await Promise.all([1, 2].map(() => world.events.create(run, started)));
    expect(results.map((result) => result.run?.status)).toEqual(["running", "running"]);
    const created = world.events.create(run, { eventType: "run_created", specVersion: 5, eventData: runData });
    await expect(created).rejects.toMatchObject({ name: "EntityConflictError" });
    expect((await allEvents(world, run)).map(({ eventType }) => eventType)).toEqual(["run_created", "run_started"]);
  });

  it("survive a crash before the list of runs knows that a run has ended", async () => {
    const tenant = newTenant();
    const store = await openStore(place.url());
    onTestFinished(() => store.close());
    const broken = createWorld({ store: failingAt(store, "workflow/run/", "unconditional"), tenant, log: "silent" });
    const run = await startRun(broken);
    await expect(broken.events.create(run, runCompleted)).rejects.toThrow("died here");
    const world = open(place, tenant);
    expect((await world.runs.list({ status: "running" })).data).toEqual([]);
    const [found] = (await world.runs.list({ status: "completed" })).data;
    expect(found).toMatchObject({ runId: run, output: payload("done") });
    // Another list finds it without its log.
    const listed = (await world.runs.list({ resolveData: "none" })).data;
    expect(listed).toMatchObject([{ runId: run, status: "completed", output: undefined }]);
  });

  it("refuse what is no event, before anything is stored", async () => {
    const world = open(place, newTenant());
    const run = await startRun(world);
    const bad = { code: "TAPE_BAD_INPUT" };
    await expect(world.events.create(run, { eventType: "hook_conflict" } as never)).rejects.toMatchObject(bad);
    await expect(world.events.create(run, stepCreated("x".repeat(513)))).rejects.toMatchObject(bad);
    await expect(world.events.create(run, hookCreated("hook_1", "t".repeat(513)))).rejects.toMatchObject(bad);
    await expect(world.events.list({ runId: run, pagination: { limit: 1_001 } })).rejects.toMatchObject(bad);
    await expect(world.events.list({ runId: run, pagination: { cursor: "../x" } })).rejects.toMatchObject(bad);
    const old = { eventType: "run_created" as const, specVersion: 6, eventData: runData };
    await expect(world.events.create(newRunId(), old)).rejects.toMatchObject({ name: "RunNotSupportedError" });
    const large = {
      ...stepCreated("step_large"),
      eventData: { stepName: "s", input: new Uint8Array(4 * 1024 * 1024) },
    };
    await expect(world.events.create(run, large)).rejects.toMatchObject({ code: "TAPE_TOO_LARGE" });
    expect(await allEvents(world, run)).toHaveLength(2);
  });
}

/** A store at which a process dies before it writes this. */
export function failingAt(store: Store, prefix: string, when: unknown): Store {
  const putValue: Store["intake"]["putValue"] = (...call) =>
    call[1].startsWith(prefix) && call[3] === when
      ? Promise.reject(new Error("died here"))
      : store.intake.putValue(...call);
  return { ...store, intake: { ...store.intake, putValue } };
}
