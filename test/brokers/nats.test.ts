import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { natsSink } from "../../src/events/sinks/nats.ts";
import { context, dataOf, eventOf, feedOf, lane, sequences, upTo } from "./sending.ts";
import { type Broker, startNats, startNatsCluster } from "./servers/servers.ts";

const stopping: (() => Promise<unknown>)[] = [];
const closing: (() => Promise<unknown>)[] = [];
const closeAll = async (all: (() => Promise<unknown>)[]): Promise<void> => {
  for (const close of all.splice(0).reverse()) await close();
};
afterEach(() => closeAll(closing));
afterAll(() => closeAll(stopping));

let server: Broker;
beforeAll(async () => {
  server = await startNats();
  stopping.push(() => server.stop());
});

/** `checkAPI: false`: a cluster answers only when it has a leader. */
async function connected(...servers: readonly Broker[]) {
  const urls = servers.map(({ url }) => url);
  const connection = await connect({ servers: urls, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  closing.push(() => connection.close());
  return { connection, manager: await jetstreamManager(connection, { timeout: 2_000, checkAPI: false }) };
}

/** A sink, and an empty stream for the events of every tenant. */
async function opened(config: object = {}) {
  const { connection, manager } = await connected(server);
  await manager.streams.add({ name: "TAPE", subjects: ["tape.>"], ...config });
  closing.push(() => manager.streams.delete("TAPE"));
  const sink = natsSink({ servers: server.url, timeoutMs: 500, connect: { reconnectTimeWait: 50 } });
  closing.push(() => sink.close!());
  return { connection, manager, sink };
}

interface StoredEvent {
  readonly subject: string;
  readonly sequence: string;
  readonly id: string;
  readonly on: string;
}

/** Everything in the stream, read through a consumer in the order of the stream. */
async function stored(connection: NatsConnection): Promise<StoredEvent[]> {
  const manager = await jetstreamManager(connection);
  const { state } = await manager.streams.info("TAPE");
  await manager.consumers.add("TAPE", { name: "reader", ack_policy: AckPolicy.None });
  const consumer = await jetstream(connection).consumers.get("TAPE", "reader");
  const found: StoredEvent[] = [];
  while (found.length < state.messages) {
    for await (const message of await consumer.fetch({ max_messages: state.messages - found.length, expires: 1_000 })) {
      found.push({ ...message.json<Omit<StoredEvent, "on">>(), on: message.subject });
    }
  }
  return found;
}

describe("the NATS sink on a real server", () => {
  it("publishes each run in order, under a subject of tenant, workflow and kind", async () => {
    const { connection, sink } = await opened();
    expect(await lane(sink, feedOf(5, 40))).toEqual({ waits: 0, refused: [] });
    const arrived = await stored(connection);
    expect(arrived).toHaveLength(200);
    for (const run of Object.values(sequences(arrived))) expect(run).toEqual(upTo(40));
    expect(new Set(arrived.map(({ on }) => on))).toEqual(new Set(["tape.default.order.step.done"]));
  });

  it("escapes what a subject gives a meaning to", async () => {
    const { connection, sink } = await opened();
    const event = eventOf("run-1", 1, {
      source: "/tape/store/a.b%20*",
      data: { run: { ...dataOf("run-1", 1).run!, workflow: "pay>all" } },
    });
    expect(await sink.send([event], context())).toEqual(["ok"]);
    expect((await stored(connection)).map(({ on }) => on)).toEqual(["tape.a=2eb=20=2a.pay=3eall.step.done"]);
  });

  it("has at most 512 messages under way, however many runs a batch has", async () => {
    const { connection } = await opened();
    let [underWay, max] = [0, 0];
    const request = connection.request.bind(connection);
    connection.request = async (...args) => {
      max = Math.max(max, ++underWay);
      try {
        return await request(...args);
      } finally {
        underWay--;
      }
    };
    const sink = natsSink({ connection });
    const batch = Array.from({ length: 1_000 }, (_, k) => eventOf(`run-${k}`, 1));
    expect(await sink.send(batch, context())).toEqual(batch.map(() => "ok"));
    expect(max).toBe(512);
  });

  it("uses a connection of the program, and leaves it open", async () => {
    const { connection } = await opened();
    const sink = natsSink({ connection });
    expect(await lane(sink, feedOf(1, 2))).toEqual({ waits: 0, refused: [] });
    await sink.close!();
    expect(connection.isClosed()).toBe(false);
    expect(await stored(connection)).toHaveLength(2);
  });

  it("the stream drops events that are sent again", async () => {
    const { connection, sink } = await opened();
    const events = feedOf(3, 10);
    await lane(sink, events);
    await lane(sink, events.slice(10));
    expect((await stored(connection)).map(({ id }) => id)).toHaveLength(30);
  });

  it("loses nothing and keeps the order while the server is killed and started again", async () => {
    const { connection, manager, sink } = await opened();
    const sending = lane(sink, feedOf(10, 60), 50);
    await expect.poll(async () => (await manager.streams.info("TAPE")).state.messages).toBeGreaterThan(50);
    await server.kill();
    await server.start();
    const { waits } = await sending;
    expect(waits).toBeGreaterThan(0);
    const runs = sequences(await stored(connection));
    expect(Object.keys(runs)).toHaveLength(10);
    for (const run of Object.values(runs)) expect(run).toEqual(upTo(60));
  });

  it("waits for a stream that does not exist yet, and refuses an event that is too large", async () => {
    const { connection, manager, sink } = await opened({ subjects: ["other.>"] });
    const [waiting] = (await sink.send([eventOf("run-1", 1)], context())) as [object];
    expect(waiting).toHaveProperty("later");
    await manager.streams.update("TAPE", { subjects: ["tape.>"] });
    const large = eventOf("run-1", 2, { data: dataOf("run-1", 2, "x".repeat(1_100_000)) });
    const sent = await sink.send([eventOf("run-1", 1), large, eventOf("run-1", 3)], context());
    const never = { never: expect.stringContaining("bytes"), code: "too_large" };
    expect(sent).toEqual(["ok", never, never]);
    expect(sequences(await stored(connection))).toEqual({ "run-1": [1] });
  });

  it("loses nothing and keeps the order while the leader of three nodes is killed", async () => {
    const nodes = await startNatsCluster(3);
    closing.push(() => Promise.all([...nodes.values()].map((node) => node.stop())));
    const { connection, manager } = await connected(...nodes.values());
    const added = () => manager.streams.add({ name: "TAPE", subjects: ["tape.>"], num_replicas: 3 });
    await expect.poll(() => added().then(() => true, String), { timeout: 30_000 }).toBe(true);
    const leader = (await manager.streams.info("TAPE")).cluster!.leader!;
    const servers = [...nodes.values()].map(({ url }) => url);
    const sink = natsSink({ servers, timeoutMs: 500, connect: { reconnectTimeWait: 50 } });
    closing.push(() => sink.close!());
    const sending = lane(sink, feedOf(20, 60), 100);
    await expect.poll(async () => (await manager.streams.info("TAPE")).state.messages).toBeGreaterThan(100);
    await nodes.get(leader)!.kill();
    const { waits } = await sending;
    expect(waits).toBeGreaterThan(0);
    // The reader's own connection may have been to the dead node, and the others elect a leader for its requests, too.
    const answers = () => jetstreamManager(connection).then(() => true, String);
    await expect.poll(answers, { timeout: 30_000 }).toBe(true);
    const runs = sequences(await stored(connection));
    expect(Object.keys(runs)).toHaveLength(20);
    for (const run of Object.values(runs)) expect(run).toEqual(upTo(60));
  });
});
