import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { type RunningServer, serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import { isTapeError } from "../../src/model/errors.ts";
import { gate } from "../../src/sdk/gate.ts";
import { object } from "../../src/sdk/object.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { type PostgresServer, startPostgres } from "../postgres/server.ts";

const proceed = gate<null>("proceed");
const counter = object("counter", {
  initial: () => 10,
  handlers: {
    add: async (_tape, self, by: number) => {
      await self.set(self.state + by);
      return self.state;
    },
    /** Adds twice without waiting in between. */
    addBoth: async (_tape, self) => {
      await Promise.all([self.set(self.state + 1), self.set(self.state + 2)]);
    },
    addLater: async (tape, self, by: number) => {
      const before = self.state;
      await tape.gate(proceed);
      await self.set(before + by);
      return self.state;
    },
    read: (_tape, self) => self.state,
    callSelf: async (tape, self): Promise<unknown> => tape.object(counter, self.key).read(),
    callOther: async (tape, self): Promise<unknown> => tape.object(counter, `${self.key} other`).add(1),
  },
});
const caller = workflow("caller", async (tape, key: string) => {
  const total = await tape.object(counter, key).add(5);
  return [total, await tape.object(counter, key).state(), await tape.object(counter, "never called").state()];
});

let folder: string;
let postgres: PostgresServer;
let server: RunningServer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tape-objects-"));
  postgres = await startPostgres({ major: 18, settings: {} });
  server = await serve({ store: `sqlite:${join(folder, "served.db")}`, port: 0, credentials: "none" });
}, 60_000);
afterAll(async () => {
  await server.stop();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

const codeOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: { code?: string; cause?: { code?: string } }) => error.cause?.code ?? error.code,
  );

describe.each(["SQLite", "PostgreSQL", "a server"])("an object on %s", (where) => {
  async function open(): Promise<Tape> {
    const runner = createRunner({ workflows: [caller], objects: [counter] });
    const log = "silent";
    const app =
      where === "a server"
        ? await Tape.connect(server.url, { runner, log })
        : await Tape.open({ store: where === "SQLite" ? "memory:" : postgres.url, runner, log });
    onTestFinished(() => app.close());
    return app;
  }

  it("applies concurrent calls one after the other, in the order in which they started", async () => {
    const app = await open();
    const one = app.object(counter, "a");
    const handles = [];
    for (let by = 1; by <= 8; by++) handles.push(await one.start.add(by));
    const totals = await Promise.all(handles.map((handle) => handle.result()));
    expect(totals).toEqual([11, 13, 16, 20, 25, 31, 38, 46]);
    expect(await one.state()).toBe(46);
  });

  it("keeps its key while a handler waits, and serves other keys and reads meanwhile", async () => {
    const app = await open();
    const one = app.object(counter, "b");
    const slow = await one.start.addLater(5);
    const next = await one.start.add(1);
    expect(await app.object(counter, "b2").add(1)).toBe(11);
    while ((await slow.status()) !== "WAITING") await systemClock.sleep(5);
    expect(await one.state()).toBe(10);
    expect(await next.status()).toBe("QUEUED");
    expect((await app.queues.explain(next.id))?.reasons).toMatchObject([{ why: "key_full", runs: [slow.id] }]);
    await app.signal(slow.id, proceed, null);
    expect(await Promise.all([slow.result(), next.result()])).toEqual([15, 16]);
  });

  it("refuses a handler that calls its own key, and lets it call another", async () => {
    const app = await open();
    const one = app.object(counter, "c");
    expect(await codeOf(one.callSelf())).toBe("TAPE_QUEUE_NESTED");
    expect(await one.callOther()).toBe(11);
  });

  it("does not overwrite a write from outside", async () => {
    const app = await open();
    const one = app.object(counter, "d");
    await one.add(1);
    const slow = await one.start.addLater(5);
    while ((await slow.status()) !== "WAITING") await systemClock.sleep(5);
    await app.store.intake.putValue(app.tenant, "object counter/d", 100, { version: 1 });
    await app.signal(slow.id, proceed, null);
    expect(await codeOf(slow.result())).toBe("TAPE_VERSION_CONFLICT");
    expect(await one.add(1)).toBe(101);
  });

  it("starts again from its initial state after the value was deleted", async () => {
    const app = await open();
    const one = app.object(counter, "e");
    await one.add(1);
    await app.store.intake.deleteValue(app.tenant, "object counter/e", 1);
    expect(await one.state()).toBe(10);
    expect(await one.add(2)).toBe(12);
  });

  it("counts a call with an id once, and two writes of one handler in their order", async () => {
    const app = await open();
    const same = app.object(counter, "f", { id: `click ${where}` });
    expect([await same.add(1), await same.add(1)]).toEqual([11, 11]);
    await app.object(counter, "f").addBoth();
    expect(await app.object(counter, "f").state()).toBe(13);
  });

  it("is called and read by other runs", async () => {
    const app = await open();
    expect(await (await app.start(caller, "g")).result()).toEqual([15, 15, 10]);
  });

  it("refuses bad keys and options before anything is written", async () => {
    const app = await open();
    const plain = app.object.bind(app) as unknown as (...args: unknown[]) => { add(by: number): Promise<unknown> };
    const refused = async (call: () => unknown): Promise<void> => {
      const error = await Promise.resolve()
        .then(call)
        .catch((thrown: unknown) => thrown);
      expect(isTapeError(error, "TAPE_BAD_INPUT") || isTapeError(error, "TAPE_TOO_LARGE"), String(error)).toBe(true);
    };
    const before = (await app.runs.list()).length;
    await refused(() => plain(counter, ""));
    await refused(() => plain(counter, "k".repeat(10_000)).add(1));
    await refused(() => plain(counter, "k", { delay: "1s" }));
    await refused(() => plain({ name: "counter" }, "k"));
    expect((await app.runs.list()).length).toBe(before);
  });
});
