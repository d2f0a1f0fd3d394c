import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { natsAlarmConsumer, natsAlarmStream, runSweeps } from "../../src/alarm/nats.ts";
import { Tape } from "../../src/host/tape.ts";
import { announce } from "../../src/push/announce.ts";
import { configuredAlarms, configuredWaker } from "../../src/push/configured.ts";
import { pushHandler } from "../../src/push/handler.ts";
import { unverified } from "../../src/push/verify/secret.ts";
import { natsWaker, natsWakeUpConsumer, natsWakeUpStream, runWakeUps } from "../../src/push/wakers/nats.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { startNats } from "./servers/servers.ts";

const send = effect("send", async (what: string) => `sent ${what}`, { dispatch: "outbox", allowUnsafe: "a test" });
const order = workflow("order", async (tape, what: string) => tape.effect(send.with(what)));
const runner = createRunner({ workflows: [order], effects: [send] });
const reactors = ["recovery", "outbox"];
const tenant = "default";

describe("wake-ups by NATS, on a real server", () => {
  let server: Awaited<ReturnType<typeof startNats>>;
  let connection: Awaited<ReturnType<typeof connect>>;
  let manager: Awaited<ReturnType<typeof jetstreamManager>>;

  beforeEach(async () => {
    server = await startNats();
    connection = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    manager = await jetstreamManager(connection, { timeout: 5_000 });
    await manager.streams.add(natsWakeUpStream());
    for (const name of reactors) await manager.consumers.add("tape-wakeups", natsWakeUpConsumer(tenant, name));
  });

  afterEach(async () => {
    await connection.close();
    await server.stop();
  });

  const consumerOf = (reactor: string) =>
    jetstream(connection).consumers.get("tape-wakeups", natsWakeUpConsumer(tenant, reactor).durable_name);
  const waiting = async (): Promise<number> => (await manager.streams.info("tape-wakeups")).state.messages;

  it("take runs through recovery and outbox, by the waker of tape.yaml, and leave no message behind", async () => {
    await using app = await Tape.open({ store: "memory:", runner, work: false, report: false });
    const handler = pushHandler(app, { reactors, verify: unverified("NATS checks its clients") });
    const running = await Promise.all(reactors.map(async (name) => runWakeUps(await consumerOf(name), handler)));
    const bounds = { batch: 10, concurrency: 10, timeout_s: 65 };
    const waker = await configuredWaker({ ...bounds, kind: "nats", servers: [server.url] }, tenant, () => {});
    const announcer = await announce(app, { reactors, waker });
    const runs = [];
    for (const what of ["tea", "milk", "salt"]) runs.push(await app.start(order, what));
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(["sent tea", "sent milk", "sent salt"]);
    await announcer.stop();
    await expect.poll(waiting, { timeout: 10_000 }).toBe(0);
    await Promise.all(running.map((one) => one.stop()));
    await waker.close!();
  });

  it("wait for a process, ten at most for a reactor, and come again until the handler succeeds", async () => {
    const waker = natsWaker({ servers: server.url });
    for (let k = 0; k < 3; k++) await waker.wake("outbox", 10);
    await waker.wake("recovery", 1);
    expect(await waiting()).toBe(11);
    await server.kill();
    await server.start();
    const statuses = [503, 500, 204];
    const bodies: string[] = [];
    const handler = async (request: Request): Promise<Response> => {
      bodies.push(await request.text());
      return new Response(null, { status: statuses.shift() ?? 204 });
    };
    const find = () =>
      consumerOf("recovery").then(
        (found) => found,
        () => undefined,
      );
    await expect.poll(find, { timeout: 15_000 }).toBeDefined();
    const running = await runWakeUps(await consumerOf("recovery"), handler, () => {});
    await expect.poll(() => bodies.length, { timeout: 20_000 }).toBe(3);
    expect(new Set(bodies)).toEqual(new Set(['{"reactor":"recovery"}']));
    await expect.poll(waiting, { timeout: 10_000 }).toBe(10);
    await running.stop();
    await waker.close!();
  });

  it("alarms of tape.yaml fire for a sleeping run", async () => {
    await manager.streams.add(natsAlarmStream());
    await manager.consumers.add("tape-alarms", natsAlarmConsumer(tenant));
    const { alarms, close } = await configuredAlarms({ kind: "nats", servers: [server.url] });
    const nap = workflow("nap", async (tape) => {
      await tape.sleep(2_500);
      return "rested";
    });
    await using app = await Tape.open({
      ...{ store: "memory:", runner: createRunner({ workflows: [nap] }), serverless: { alarms } },
    });
    const consumer = await jetstream(connection).consumers.get("tape-alarms", natsAlarmConsumer(tenant).durable_name);
    const running = await runSweeps(consumer, app);
    expect(await (await app.start(nap, undefined)).result()).toBe("rested");
    await running.stop();
    await close();
  });
});
