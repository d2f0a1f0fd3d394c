import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { natsAlarmConsumer, natsAlarmStream, natsAlarms, runSweeps } from "../../src/alarm/nats.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { startNats } from "./servers/servers.ts";

type Nats = Awaited<ReturnType<typeof startNats>>;
const tenant = "default";

describe("NATS alarms, on a real server", () => {
  let server: Nats;
  let connection: Awaited<ReturnType<typeof connect>>;
  const sweeps: number[] = [];
  let fails = 0;

  beforeEach(async () => {
    server = await startNats();
    connection = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    const manager = await jetstreamManager(connection, { timeout: 5_000 });
    await manager.streams.add(natsAlarmStream());
    await manager.consumers.add("tape-alarms", natsAlarmConsumer(tenant));
    sweeps.length = 0;
    fails = 0;
  });

  afterEach(async () => {
    await connection.close();
    await server.stop();
  });

  const alarms = () => natsAlarms({ jetstream: jetstream(connection) });
  const consumer = () => jetstream(connection).consumers.get("tape-alarms", natsAlarmConsumer(tenant).durable_name);
  const app = {
    sweep: async () => {
      sweeps.push(Date.now());
      if (fails-- > 0) throw new Error("the store is away");
    },
  };

  it("fire at their time and never early, and an earlier one is not replaced by a later one", async () => {
    const running = await runSweeps(await consumer(), app, () => {});
    const from = Date.now();
    await alarms().set({ tenant, inMs: 2_500, name: "d2" });
    await alarms().set({ tenant, inMs: 1_000, name: "d1" });
    await alarms().set({ tenant, inMs: 1_000, name: "d1" });
    await alarms().set({ tenant: "other", inMs: 500, name: "d0" });
    await expect.poll(() => sweeps.length, { timeout: 15_000 }).toBe(2);
    expect(sweeps[0]! - from).toBeGreaterThanOrEqual(1_000);
    expect(sweeps[1]! - from).toBeGreaterThanOrEqual(2_500);
    await running.stop();
  });

  it("are delivered again until a sweep succeeds", async () => {
    fails = 2;
    const running = await runSweeps(await consumer(), app, () => {});
    await alarms().set({ tenant, inMs: 300, name: "d1" });
    await expect.poll(() => sweeps.length, { timeout: 20_000 }).toBe(3);
    await running.stop();
  });

  it("survive a server that is killed", async () => {
    await alarms().set({ tenant, inMs: 3_000, name: "d1" });
    await server.kill();
    await server.start();
    await expect
      .poll(
        () =>
          consumer().then(
            () => true,
            () => false,
          ),
        { timeout: 15_000 },
      )
      .toBe(true);
    const running = await runSweeps(await consumer(), app, () => {});
    await expect.poll(() => sweeps.length, { timeout: 20_000 }).toBe(1);
    await running.stop();
  });

  it("run what a process has started that sends no wake-up", async () => {
    const hello = workflow("hello", async (tape, name: string) => {
      await tape.sleep(3_000);
      return `hello ${name}`;
    });
    const runner = createRunner({ workflows: [hello] });
    await using tape = await Tape.open({ store: "memory:", runner, serverless: { alarms: alarms() } });
    const running = await runSweeps(await consumer(), tape);
    const run = await tape.start(hello, "Ada");
    expect(await run.result()).toBe("hello Ada");
    await running.stop();
  });

  it("a thousand timers due at one moment fire with a few alarms, and none early", async () => {
    const late: number[] = [];
    const due = Date.now() + 25_000;
    const nap = workflow("nap", async (tape) => {
      await tape.sleepUntil(new Date(due));
      late.push(Date.now() - due);
    });
    const runner = createRunner({ workflows: [nap] });
    await using tape = await Tape.open({ store: "memory:", runner, serverless: { alarms: alarms() } });
    await tape.startAll(
      nap,
      Array.from({ length: 1_000 }, (_, k) => ({ input: undefined, id: `n${k}` })),
    );
    await tape.sweep(); // parks them all
    let fired = 0;
    const sweep = async (): Promise<void> => {
      fired++;
      await tape.sweep();
    };
    const running = await runSweeps(await consumer(), { sweep });
    await expect.poll(() => late.length, { timeout: 55_000, interval: 200 }).toBe(1_000);
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
    // A busy machine may take longer than the two seconds of an idle one.
    console.log(`1000 timers: p99 ${late.toSorted((a, b) => a - b)[989]} ms late, ${fired} alarms`);
    expect(fired).toBeLessThanOrEqual(10);
    await running.stop();
  });
});
