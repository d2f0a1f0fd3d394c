import { describe, expect, inject, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { temporaryFolder } from "../cli/stage.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

const steady = workflow("steady", async (tape, n: number) => {
  tape.publish("progress", { page: n });
  await tape.gate(gate("go"));
});
const runner = createRunner({ workflows: [steady] });
const idle = createRunner({ workflows: [] });

async function postgresUrl(): Promise<string> {
  const url = await freshDatabase(inject("postgres18"));
  onTestFinished(() => dropDatabase(url));
  return url;
}

describe("published values", () => {
  it.each([
    [1_000, "SQLite", async () => `sqlite:${await temporaryFolder()}/tape.db`],
    [200, "PostgreSQL", postgresUrl],
  ] as const)(
    "of %i parked runs are read with no worker alive, on %s",
    async (count, _name, urlOf) => {
      const url = await urlOf();
      const ids = Array.from({ length: count }, (_, k) => `run-${k}`);
      const app = await Tape.open({ store: url, runner, concurrency: 1_000, report: false, log: "silent" });
      await Promise.all(ids.map((id, k) => app.start(steady, k, { id })));
      await expect
        .poll(async () => (await app.runs.list({ status: ["RUNNING", "RUNNABLE"] })).length, { timeout: 30_000 })
        .toBe(0);
      await app.close();
      await using reader = await Tape.open({ store: url, runner: idle, work: false, report: false, log: "silent" });
      expect(await reader.store.read.leases("default", { held: true })).toEqual([]);
      const read = await Promise.all(
        ids.map(async (id) => (await reader.run(id)).published<{ page: number }>("progress")),
      );
      expect(read).toEqual(ids.map((_, page) => ({ page })));
      expect(await (await reader.run("run-7")).status()).toBe("WAITING");
    },
    60_000,
  );
});

describe("a handle", () => {
  it("watches what its run publishes until the run ends", async () => {
    const next = gate<number>("next");
    const counter = workflow("counter", async (tape) => {
      for (let n = 0; n < 3; ) {
        tape.publish("n", n);
        const answer = await tape.gate(next);
        if (answer.status === "received") n = answer.value;
      }
      tape.publish("n", "done");
    });
    const runs = createRunner({ workflows: [counter] });
    await using app = await Tape.open({ store: "memory:", runner: runs, report: false, log: "silent" });
    const run = await app.start(counter, null);
    const seen: unknown[] = [];
    for await (const value of run.watch("n")) {
      seen.push(value);
      if (typeof value === "number") await app.signal(run.id, next, value + 1);
    }
    expect(seen).toEqual([0, 1, 2, "done"]);
    const stop = new AbortController();
    stop.abort();
    for await (const value of run.watch("n", { signal: stop.signal })) expect(value).toBe("unreachable");
  });

  it("rejects bad options before anything is written", async () => {
    await using app = await Tape.open({ store: "memory:", runner, report: false, log: "silent" });
    const go = gate("go");
    const bad = (signals: unknown) => app.start(steady, 1, { id: "bad", signals } as never);
    await expect(bad("x")).rejects.toMatchObject({ code: "TAPE_BAD_INPUT", details: { field: "signals" } });
    await expect(bad([{ gate: "go", value: 1 }])).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    await expect(bad([{ gate: go, value: 1, keys: "k" }])).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    await expect(bad([{ gate: go, value: 1, key: "k".repeat(10_000) }])).rejects.toMatchObject({
      code: "TAPE_TOO_LARGE",
    });
    await expect(app.runs.get("bad")).resolves.toBeUndefined();
    const requested = app.ask("none", gate<number, number>("g", { reply: true }), 1, { timeout: "soon" as never });
    await expect(requested).rejects.toMatchObject({ code: "TAPE_BAD_INPUT", details: { field: "timeout" } });
    await expect(app.deliver("x", 1)).rejects.toMatchObject({ code: "TAPE_NOT_FOUND" });
    expect(() => gate("g", { reply: "yes" } as never)).toThrow(/TAPE_BAD_INPUT/);
    await expect(Tape.open({ store: "memory:", runner, publicUrl: "tape.example" })).rejects.toMatchObject({
      details: { field: "publicUrl" },
    });
  });
});
