import { describe, expect, it } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { stage, tenant } from "./stage.ts";

describe("a store that rejects the end of a run", () => {
  const flow = (name: string, run: (tape: TapeContext) => unknown): AnyWorkflow =>
    workflow(name, run as never) as unknown as AnyWorkflow;

  /** After this many tries without a pause the store stops responding, and the test fails. */
  const maxTries = 200;

  it("is retried with pauses, and then later", async () => {
    const s = await stage();
    let tries = 0;
    const store: Store = {
      ...s.store,
      fenced: {
        ...s.store.fenced,
        async append(fence, entry) {
          const ends = entry.records.some(({ kind }) => kind === "run.ended");
          if (!ends) return s.store.fenced.append(fence, entry);
          if (++tries > maxTries) return new Promise<never>(() => {});
          throw new TapeError("TAPE_RUN_UNSETTLED", "something of the run is open");
        },
      },
      onWake: (listener) => s.store.onWake(listener),
    };
    const plain = flow("plain", () => "done");
    const p = s.process([plain], { store });
    const id = await p.start(plain);
    await p.until(() => s.logged.some(({ event }) => event === "run.end_refused"));
    expect(tries).toBeLessThan(20);
    expect(await s.run(id)).toMatchObject({ status: "ENDING" });
    await s.clock.elapse(60_000);
    await p.until(() => tries > 8);
    expect(tries).toBeLessThan(40);
  });

  it("that counts notes which it does not return is read with pauses", async () => {
    const s = await stage();
    let hidden = true;
    let reads = 0;
    const store: Store = {
      ...s.store,
      read: {
        ...s.store.read,
        async journal(of, target, part) {
          if (part?.inbox !== true || !hidden) return s.store.read.journal(of, target, part);
          return ++reads > maxTries ? new Promise<never>(() => {}) : [];
        },
      },
      onWake: (listener) => s.store.onWake(listener),
    };
    let go = (): void => {};
    const waits = flow("waits", (tape) => tape.step("long", () => new Promise<void>((resolve) => (go = resolve))));
    const p = s.process([waits], { store });
    const id = await p.start(waits);
    await p.until(async () => (await s.run(id)).status === "RUNNING");
    await s.store.intake.signal(tenant, id, { name: "any", value: 1 });
    go();
    await s.clock.elapse(20_000);
    expect(reads).toBeGreaterThan(1);
    expect(reads).toBeLessThan(40);
    expect((await s.kinds(id)).filter((kind) => kind === "notes.taken")).toEqual([]);
    expect(s.logged.filter(({ event }) => event === "run.notes_missing")).toHaveLength(1);
    hidden = false;
    expect(await p.over(id)).toMatchObject({ status: "COMPLETED" });
  });
});
