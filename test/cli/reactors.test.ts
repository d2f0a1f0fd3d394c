import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";
import { figure, lint } from "../prometheus.ts";
import { library, project, Sidecar } from "./sidecar.ts";

const postgresUrl = ownPostgres(18);

/** The user's code, as the sidecar loads it. Each effect is a line in a file. */
const agent = `
import { appendFileSync } from "node:fs";
import { createRunner, effect, workflow } from ${library};
const send = effect("send", async (what: string, fx) => { appendFileSync("world.log", what + " " + fx.key + "\\n"); return what; },
  { dispatch: "outbox", allowUnsafe: "a test" });
const hello = workflow("hello", async (tape, input: { name: string }) => {
  await tape.sleep(50);
  return "hello " + await tape.effect(send.with(input.name));
});
const hang = workflow("hang", async (tape) => tape.step("hang", () => { appendFileSync("world.log", "hangs\\n"); return new Promise(() => {}); }));
const tick = workflow("tick", async (tape) => tape.runId);
const nap = workflow("nap", async (tape) => {
  let wake = () => {};
  const woken = new Promise((resolve) => { wake = () => resolve("awake"); });
  const busy = tape.step("busy", () => woken);
  await tape.sleep(100);
  wake();
  return busy;
});
export const buildRunner = () => createRunner({ workflows: [hello, hang, tick, nap], effects: [send] });
export const buildLess = async () => createRunner({ workflows: [hello, hang, tick] });
`;

/** The same by name, for a process that starts runs without the code. */
const send = effect("send", async (what: string) => what, { dispatch: "outbox", allowUnsafe: "a test" });
const hello = workflow("hello", async (_tape, input: { name: string }) => input.name);
const hang = workflow("hang", async () => 1);
const tick = workflow("tick", async () => "");
const nap = workflow("nap", async () => "");
const elsewhere = createRunner({ workflows: [hello, hang, tick, nap], effects: [send] });

const from = ["--runner-from", "./app/agent.ts#buildRunner"];
const canary = "hunter2";
let database: string;
beforeAll(async () => {
  database = await freshDatabase(postgresUrl());
});
afterAll(() => dropDatabase(database));

async function scene(backend: string, yaml = "", files: Record<string, string> = {}) {
  const folder = project({ "app/agent.ts": agent, "tape.yaml": yaml, ...files });
  const url = backend === "postgres" ? database : `sqlite:${join(folder, ".tape/tape.db")}`;
  const secret = new URL(database);
  secret.password = canary; // the server trusts every local user and requires no password
  const env = backend === "postgres" ? { TAPE_STORE_URL: secret.href } : {};
  /** Called once the sidecar has created the file. */
  const open = async (): Promise<Tape> => {
    const store = await openStore(url);
    const app = await Tape.open({ store, runner: elsewhere, work: false });
    onTestFinished(async () => {
      await app.close();
      await store.close();
    });
    return app;
  };
  const world = () => {
    const file = join(folder, "world.log");
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  };
  return { folder, env, open, world };
}

describe.each(["sqlite", "postgres"])("tape-reactors on %s", (backend) => {
  it("drives runs, timers and effects, and exits with 0 and no lease on SIGTERM", async () => {
    const { folder, env, open, world } = await scene(backend);
    const sidecar = new Sidecar(folder, from, { ...env, TAPE_REPLICA_ID: "side" });
    const started = await sidecar.until(() => sidecar.logged("reactors.started"));
    expect(started).toMatchObject({
      reactors: ["recovery", "reconciler", "outbox", "timers", "compensation"],
      replica: "side",
    });
    const app = await open();
    const run = await app.start(hello, { name: "ada" });
    expect(await run.result()).toBe("hello ada");
    expect(world()).toEqual([expect.stringMatching(/^ada /)]);
    const [process] = await sidecar.until(async () => {
      const listed = await app.store.read.processes("default");
      return listed.length > 0 && listed;
    });
    expect(process).toMatchObject({
      label: "side",
      body: { driving: expect.any(Number), reactors: { outbox: {}, timers: {} } },
    });
    expect(await sidecar.stop()).toBe(0);
    expect(await app.store.read.processes("default")).toEqual([]);
    expect(sidecar.lines.map(({ event }) => event)).toContain("reactors.stopping");
    expect(sidecar.logged("reactors.stopped")?.stats).toMatchObject({ timers: { done: 1 }, outbox: { done: 1 } });
    expect(await app.store.read.leases("default", { held: true })).toEqual([]);
    expect(started.store).toMatch(backend === "postgres" ? /:\*\*\*@/ : /^sqlite:/);
    expect(JSON.stringify(sidecar.lines)).not.toContain(canary);
  });

  it("answers probes and scrapes where PORT says, until it has drained", async () => {
    const { folder, env } = await scene(backend);
    const sidecar = new Sidecar(folder, from, { ...env, PORT: "0" });
    const { url } = await sidecar.until(() => sidecar.logged("metrics.listening"));
    expect(url).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/);
    const get = async (path: string) => fetch(String(url).replace("0.0.0.0", "127.0.0.1") + path);
    for (const path of ["/livez", "/readyz", "/healthz"]) expect((await get(path)).status, path).toBe(200);
    const text = await (await get("/metrics")).text();
    expect(lint(text)).toEqual([]);
    expect(figure(text, 'tape_reactor_due{reactor="outbox"}')).toBe(0);
    expect(figure(text, 'tape_reactor_polls_total{reactor="recovery"}')).toBeGreaterThan(0);
    expect(await sidecar.stop()).toBe(0);
  });

  it("ends the sleep of a driven run without a note", async () => {
    const { folder, env, open } = await scene(backend);
    const sidecar = new Sidecar(folder, [...from, "--only", "timers,recovery"], env);
    await sidecar.until(() => sidecar.logged("reactors.started"));
    const app = await open();
    const run = await app.start(nap, {}, { id: `nap-${backend}` });
    expect(await run.result()).toBe("awake"); // its step keeps the run driven until the sleep ends
    const journal = (inbox: boolean) => app.store.read.journal("default", { run: run.id }, { inbox });
    expect(await journal(true)).toEqual([]);
    const kinds = (await journal(false)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "sleep.ended" || kind === "notes.taken")).toEqual(["sleep.ended"]);
    expect(await sidecar.stop()).toBe(0);
    expect(sidecar.logged("reactors.stopped")?.stats).toMatchObject({ timers: { found: 1, done: 1 } });
  });

  it("releases a run that does not drain in time", async () => {
    const { folder, env, open, world } = await scene(backend, "tape: { drain_s: 0.2 }\n");
    const sidecar = new Sidecar(folder, from, env);
    await sidecar.until(() => sidecar.logged("reactors.started"));
    const app = await open();
    const run = await app.start(hang, {});
    await sidecar.until(() => world().includes("hangs"));
    expect((await app.runs.get(run.id))?.status).toBe("RUNNING");
    expect(await sidecar.stop("SIGINT")).toBe(0);
    expect((await app.runs.get(run.id))?.status).toBe("RUNNABLE");
    expect(await app.store.read.leases("default", { held: true })).toEqual([]);
    await app.cancel(run.id, { reason: "the test is over" });
  });

  it("fires a schedule exactly once when one of two sidecars is killed", async () => {
    const { folder, env, open } = await scene(backend);
    const sidecars = [new Sidecar(folder, from, env), new Sidecar(folder, [...from, "--only", "timers,recovery"], env)];
    for (const sidecar of sidecars) await sidecar.until(() => sidecar.logged("reactors.started"));
    const app = await open();
    const id = `tick-${backend}`;
    await app.schedules.create(
      id,
      tick,
      {},
      { cron: "* * * * * *", overlap: "allow", catchUp: "all", catchUpWindow: "1h" },
    );
    const ticks = async () => (await app.runs.list({ workflow: "tick", status: ["COMPLETED"] })).map((run) => run.id);
    const [survivor, victim] = sidecars as [Sidecar, Sidecar];
    await survivor.until(async () => (await ticks()).length >= 2);
    victim.process.kill("SIGKILL");
    await survivor.until(async () => (await ticks()).length >= 4);
    await app.schedules.pause(id);
    expect(await survivor.stop()).toBe(0);
    const runs = (await app.runs.list({ workflow: "tick" })).map((run) => Date.parse(run.id.split("@")[1]!)).sort();
    expect(runs).toEqual(runs.map((_, k) => runs[0]! + k * 1_000));
    const fired = [survivor, victim].flatMap(({ lines }) => lines.filter(({ event }) => event === "schedules.fired"));
    expect(new Set(fired.map(({ run }) => run)).size).toBe(fired.length);
    await app.schedules.delete(id);
  });
});

describe("tape-reactors", () => {
  it("runs only the reactors of --only, configured by file and flags", async () => {
    const yaml = "agent: { runner_factory: ./agent.ts#buildRunner }\ntape: { store: { url: 'sqlite:./here.db' } }\n";
    const { folder } = await scene("sqlite", "", { "sub/conf.yaml": yaml, "sub/agent.ts": agent });
    const args = ["--config", "sub/conf.yaml", "--only", "outbox,timers", "--set", "tape.log.level=debug"];
    const sidecar = new Sidecar(folder, args);
    const started = await sidecar.until(() => sidecar.logged("reactors.started"));
    expect(started).toMatchObject({ reactors: ["outbox", "timers"], config: "sub/conf.yaml" });
    // Paths in the file are relative to its folder.
    expect(existsSync(join(folder, "sub/here.db"))).toBe(true);
    expect(await sidecar.stop()).toBe(0);
  });

  it("parks an effect without a definition, and logs it in both processes", async () => {
    const { folder, open } = await scene("sqlite");
    const less = ["--runner-from", "./app/agent.ts#buildLess", "--only"];
    const driver = new Sidecar(folder, [...less, "recovery,timers"]);
    const sender = new Sidecar(folder, [...less, "outbox"]);
    for (const sidecar of [driver, sender]) await sidecar.until(() => sidecar.logged("reactors.started"));
    const app = await open();
    const run = await app.start(hello, { name: "ada" });
    const parked = await sender.until(() => sender.logged("reactor.no_handler"));
    expect(parked).toMatchObject({ level: "warn", effect: "send", run: run.id });
    expect(driver.logged("effect.unregistered")).toMatchObject({ level: "warn", effect: "send", run: run.id });
    expect(await app.effects.list({ run: run.id })).toMatchObject([{ status: "PENDING" }]);
    for (const sidecar of [driver, sender]) expect(await sidecar.stop()).toBe(0);
  });

  it("runs custom reactors; one with a built-in name replaces the built-in", async () => {
    const mine = `
export const sweep = async (app, { name, fence, log }) => { log("info", "mine.swept", { name, runs: (await app.runs.list()).length }); return 1; };
export const instead = async (app) => { await app.store.intake.putValue("default", "instead", 1, "unconditional"); };
`;
    const yaml = `
tape:
  reactors:
    outbox: { handler: ./app/mine.ts#instead }
    sweeper: { handler: ./app/mine.ts#sweep, interval_ms: 50 }
    off: { enabled: false, handler: ./app/none.ts#gone }
`;
    const { folder, open, world } = await scene("sqlite", yaml, { "app/mine.ts": mine });
    const sidecar = new Sidecar(folder, from);
    const { reactors } = await sidecar.until(() => sidecar.logged("reactors.started"));
    expect(reactors).toEqual(["recovery", "reconciler", "outbox", "timers", "compensation", "sweeper"]);
    const app = await open();
    const run = await app.start(hello, { name: "ada" });
    await sidecar.until(async () => (await app.effects.list({ run: run.id }))[0]?.status === "PENDING");
    await sidecar.until(async () => (await app.store.read.value("default", "instead")) !== undefined);
    await sidecar.until(() => sidecar.lines.some(({ event, runs }) => event === "mine.swept" && runs === 1));
    expect(await sidecar.stop()).toBe(0);
    expect(world()).toEqual([]);
    expect(await app.effects.list({ run: run.id })).toMatchObject([{ status: "PENDING" }]);
  });

  it("starts examples/reactors", async () => {
    const read = (name: string) => readFileSync(new URL(`../../examples/reactors/${name}`, import.meta.url), "utf8");
    const own = (name: string) => read(name).replace('"../../../src/exports/index.ts"', library);
    const files = {
      "tape.yaml": read("tape.yaml"),
      "app/reap.ts": own("app/reap.ts"),
      "app/agent.ts": own("app/agent.ts"),
    };
    const sidecar = new Sidecar(project(files));
    const { reactors } = await sidecar.until(() => sidecar.logged("reactors.started"));
    expect(reactors).toContain("reap-aged-obligations");
    expect(await sidecar.stop()).toBe(0);
    expect(sidecar.logged("reactors.stopped")?.stats).toMatchObject({
      "reap-aged-obligations": { polls: 1, faults: 0 },
    });
  });

  it.each<[string, string[], string, number, RegExp]>([
    ["a missing runner", [], "", 1, /TAPE_BAD_CONFIG: recovery needs your runner: set --runner-from/],
    [
      "a missing file",
      ["--runner-from", "./app/agnt.ts#buildRunner"],
      "",
      1,
      /TAPE_BAD_MODULE: .*file .*agnt\.ts not found/,
    ],
    [
      "an unknown reactor",
      [...from, "--only", "recvery"],
      "",
      1,
      /--only: unknown reactor recvery; did you mean recovery/,
    ],
    [
      "a bad heartbeat",
      [...from, "--set", "tape.reactors.outbox.heartbeat_s=29"],
      "",
      1,
      /--set tape\.reactors\.outbox\.heartbeat_s: .*more than half/,
    ],
    [
      "a missing handler",
      from,
      "tape: { reactors: { mine: { handler: ./mine.ts#a } } }",
      1,
      /tape\.reactors\.mine\.handler: handler .*not found/,
    ],
    ["a store in memory", [...from, "--store", "sqlite::memory:"], "", 1, /other processes cannot see/],
    ["an unknown flag", ["--rnner-from", "x"], "", 2, /--rnner-from/],
  ])("rejects %s", async (_, args, yaml, code, message) => {
    const folder = project({ "app/agent.ts": agent, "tape.yaml": yaml });
    const sidecar = new Sidecar(folder, args);
    expect(await sidecar.ended()).toBe(code);
    expect(sidecar.other.join("\n")).toMatch(message);
    expect(sidecar.logged("reactors.started")).toBeUndefined();
  });

  it("prints its help and its version", async () => {
    const folder = project({});
    const help = new Sidecar(folder, ["--help"]);
    expect([await help.ended(), help.stdout.split("\n")[0]]).toEqual([0, "tape-reactors"]);
    const version = new Sidecar(folder, ["--version"]);
    expect([await version.ended(), version.stdout]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)]);
  });
});
