import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, type Runner, type Workflow, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { TestProcess } from "../../testkit/kit/process.ts";
import { openVirtualStore } from "../../testkit/kit/virtual-tape.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { type VirtualPostgres, virtualPostgres } from "../kit/virtual-postgres.ts";

const tenant = "t";
let postgres: VirtualPostgres;
beforeAll(async () => {
  postgres = await virtualPostgres(inject("postgres18"));
});
afterAll(() => postgres?.close());

/** Two processes on one store, in virtual time; the test releases what the old process waits for. */
class Scene {
  readonly time = new VirtualTime();
  readonly world: string[] = [];
  store!: Store;
  #release = (): void => {};
  #reassigned = false;

  async open(backend: "SQLite" | "PostgreSQL"): Promise<void> {
    const opening = backend === "SQLite" ? openVirtualStore(this.time, seededRandom(1)) : postgres.open(this.time);
    this.store = await this.time.during(opening);
  }

  /** Blocks the old process until `release`; returns at once for others. */
  hold(who: string): Promise<void> | undefined {
    return who === "old" ? new Promise<void>((resolve) => (this.#release = resolve)) : undefined;
  }

  release(): void {
    this.#release();
  }

  /** The old process finds no work once the run was reassigned; otherwise it might be its own successor. */
  process(name: string, runner: Runner): Promise<Tape> {
    const { time, store } = this;
    const { clock, store: own } = new TestProcess({ name, clock: time, store });
    const claim = new Proxy(own.claim, {
      get: (calls, key: keyof Store["claim"]) =>
        key === "find" && this.#reassigned && name === "old" ? async () => [] : calls[key],
    });
    const more = { tenant, random: seededRandom(name) };
    return time.during(Tape.open({ store: { ...own, claim }, runner, clock, ...more }));
  }

  /** An operator reassigns the run: takes over the lease of a holder that is alive and trusts it. */
  async reassign(run: string): Promise<void> {
    const claimant = { owner: "operator", label: "operator", reactor: "recovery", ttlMs: 20_000 };
    const manual = { expect: "any", reason: "manual", by: "ada", auditReason: "another one does it" } as const;
    const target = { target: { run }, claimant, nonce: seededRandom(run).bits63(), ...manual };
    expect(await this.time.during(this.store.claim.acquire(tenant, target))).toMatchObject({ ok: true });
    this.#reassigned = true;
  }

  read<T>(query: (read: Store["read"]) => Promise<T>): Promise<T> {
    return this.time.during(query(this.store.read));
  }
}

const flowOf = (runner: Runner, name: string): Workflow<undefined, unknown> =>
  runner.workflows.get(name) as unknown as Workflow<undefined, unknown>;

describe.each(["SQLite", "PostgreSQL"] as const)("a run that was reassigned, on %s", (backend) => {
  it("its stale completion starts no child and no outbox effect, and leaves no note", async () => {
    const scene = new Scene();
    await scene.open(backend);
    const runner = (who: string): Runner => {
      const out = effect("out", (_: null) => void scene.world.push(`out by ${who}`), {
        dispatch: "outbox",
        compensate: () => {},
      });
      const child = workflow("child", async () => void scene.world.push(`child by ${who}`));
      const task = workflow("task", async (tape) => {
        await tape.step("work", () => scene.hold(who));
        await Promise.all([tape.spawn(child, undefined).then((kid) => kid.result()), tape.effect(out.with(null))]);
        return `done by ${who}`;
      });
      const top = workflow("top", async (tape) => (await tape.spawn(task, undefined)).result());
      return createRunner({ workflows: [top, task, child], effects: [out] });
    };
    const old = await scene.process("old", runner("old"));
    const top = flowOf(runner("old"), "top");
    await scene.time.during(old.start(top, undefined, { id: "top" }));
    await scene.time.elapse(1_000);
    const task = "top.0";
    expect(await scene.read((read) => read.run(tenant, task))).toMatchObject({ status: "RUNNING" });
    await scene.reassign(task);
    const journal = await scene.read((read) => read.journal(tenant, { run: task }));
    const inbox = await scene.read((read) => read.journal(tenant, { run: "top" }, { inbox: true }));
    scene.release();
    await scene.time.elapse(5_000);
    expect(await scene.read((read) => read.journal(tenant, { run: task }))).toEqual(journal);
    expect(await scene.read((read) => read.journal(tenant, { run: "top" }, { inbox: true }))).toEqual(inbox);
    expect(await scene.read((read) => read.runs(tenant))).toHaveLength(2);
    expect(await scene.read((read) => read.effects(tenant))).toEqual([]);
    expect(scene.world).toEqual([]);

    await scene.time.during(old.close());
    const successor = await scene.process("new", runner("new"));
    await scene.time.elapse(120_000);
    expect(await scene.read((read) => read.run(tenant, "top"))).toMatchObject({ outcome: "done by new" });
    expect(scene.world.sort()).toEqual(["child by new", "out by new"]);
    await scene.time.during(successor.close());
  });

  it("the old agent's tool call is rejected before the effect is sent", async () => {
    const scene = new Scene();
    await scene.open(backend);
    const went: string[] = [];
    const runner = (who: string): Runner => {
      const tool = effect("tool", (_: null, fx) => void scene.world.push(`${who}: ${fx.key}`), {
        compensate: () => {},
      });
      const agent = workflow("agent", async (tape) => {
        await tape.decide("think", () => scene.hold(who));
        went.push(who);
        await tape.effect(tool.with(null));
        return `done by ${who}`;
      });
      return createRunner({ workflows: [agent], effects: [tool] });
    };
    const old = await scene.process("old", runner("old"));
    const agent = flowOf(runner("old"), "agent");
    await scene.time.during(old.start(agent, undefined, { id: "task" }));
    await scene.time.elapse(1_000);
    await scene.reassign("task");
    const successor = await scene.process("new", runner("new"));
    await scene.time.elapse(60_000);
    // The new agent is done. Only now the model responds to the old agent, which has received no notification.
    expect(await scene.read((read) => read.run(tenant, "task"))).toMatchObject({ outcome: "done by new" });
    const journal = await scene.read((read) => read.journal(tenant, { run: "task" }));
    scene.release();
    await scene.time.elapse(60_000);
    expect(scene.world).toEqual(["new: task:1"]);
    expect(went).toEqual(["new"]);
    expect(await scene.read((read) => read.journal(tenant, { run: "task" }))).toEqual(journal);
    expect(await scene.read((read) => read.effects(tenant, { role: "effect" }))).toHaveLength(1);
    await scene.time.during(Promise.all([old.close(), successor.close()]));
  });

  it("the same if it is reassigned between its decision and its tool call", async () => {
    const scene = new Scene();
    await scene.open(backend);
    let thought = false;
    const runner = (who: string): Runner => {
      const tool = effect("tool", (_: null, fx) => void scene.world.push(`${who}: ${fx.key}`), {
        compensate: () => {},
      });
      const agent = workflow("agent", async (tape) => {
        await tape.decide("think", () => "buy");
        thought = true;
        await scene.hold(who); // code that is not durable is slow
        await tape.effect(tool.with(null));
        return `done by ${who}`;
      });
      return createRunner({ workflows: [agent], effects: [tool] });
    };
    const old = await scene.process("old", runner("old"));
    const agent = flowOf(runner("old"), "agent");
    await scene.time.during(old.start(agent, undefined, { id: "task" }));
    await scene.time.elapse(1_000);
    expect(thought).toBe(true);
    await scene.reassign("task");
    scene.release();
    await scene.time.elapse(5_000);
    expect(scene.world).toEqual([]);
    expect(await scene.read((read) => read.effects(tenant))).toEqual([]);
    await scene.time.during(old.close());
    const successor = await scene.process("new", runner("new"));
    await scene.time.elapse(60_000);
    expect(scene.world).toEqual(["new: task:1"]);
    await scene.time.during(successor.close());
  });
});
