import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { configSchema } from "../../src/config/schema.ts";
import type { TapeEvent } from "../../src/events/event.ts";
import type { Delivery, Sink } from "../../src/events/sink.ts";
import { runByRun } from "../../src/events/sinks/in-order.ts";
import { type KafkaMessage, kafkaSink } from "../../src/events/sinks/kafka.ts";
import { natsSink } from "../../src/events/sinks/nats.ts";
import { pubsubSink } from "../../src/events/sinks/pubsub.ts";
import { redisSink } from "../../src/events/sinks/redis.ts";
import { SharedClient } from "../../src/events/sinks/shared-client.ts";
import { assertClient } from "../../src/host/broker-sinks.ts";
import { configuredFanout } from "../../src/host/configured-sinks.ts";
import { loadPeer } from "../../src/model/peer.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { context, dataOf, eventOf } from "../brokers/sending.ts";

const events = ["a-1", "b-2", "a-1", "b-2", "a-1"].map((run, k) => eventOf(run, k + 1));
const topic = "projects/p/topics/t";
const seqOf = (event: TapeEvent): number => Number(event.id.split(":")[1]);

describe("events of one run", () => {
  it("leave one at a time, those of different runs at once", async () => {
    const log: string[] = [];
    const sendOne = async (event: TapeEvent): Promise<Delivery> => {
      log.push(`send ${seqOf(event)}`);
      await new Promise(setImmediate);
      log.push(`done ${seqOf(event)}`);
      return "ok";
    };
    expect(await runByRun(events, sendOne)).toEqual(Array(5).fill("ok"));
    expect(log.slice(0, 2)).toEqual(["send 1", "send 2"]);
    for (const [first, next] of [
      [1, 3],
      [3, 5],
      [2, 4],
    ]) {
      expect(log.indexOf(`done ${first}`)).toBeLessThan(log.indexOf(`send ${next}`));
    }
  });

  it("stay behind one that the sink has not received", async () => {
    const sent: number[] = [];
    const sendOne = async (event: TapeEvent): Promise<Delivery> => {
      sent.push(seqOf(event));
      if (event.partitionkey === "a-1") throw new Error("away");
      return seqOf(event) === 2 ? "ok" : { never: "refused" };
    };
    const later = { later: new Error("away") };
    expect(await runByRun(events, sendOne)).toEqual([later, "ok", later, { never: "refused" }, later]);
    expect(sent.sort()).toEqual([1, 2, 4]);
  });
});

describe("a client", () => {
  it("is shared, and opened again once after it failed or closed", async () => {
    let opened = 0;
    let fails = true;
    const shared = new SharedClient(
      async () => {
        opened += 1;
        if (fails) throw new Error("away");
        return { id: opened, closed: false };
      },
      ({ closed }) => closed,
    );
    await expect(Promise.all([shared.get(), shared.get()])).rejects.toThrow("away");
    fails = false;
    const [first, same] = await Promise.all([shared.get(), shared.get()]);
    expect([first!.id, same]).toEqual([opened, first]);
    first!.closed = true;
    const again = await Promise.all([shared.get(), shared.get(), shared.get()]);
    expect(new Set(again.map(({ id }) => id))).toEqual(new Set([first!.id + 1]));
    const closed: number[] = [];
    await shared.close(async ({ id }) => closed.push(id));
    expect(closed).toEqual([first!.id + 1]);
  });
});

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, object>;
};
const commands = [
  "npm install @nats-io/transport-node@^3.4.0 @nats-io/jetstream@^3.4.0",
  "npm install redis@^6.3.0",
  "npm install @platformatic/kafka@^2.12.0",
];

describe("a package that is not installed", () => {
  it.each<[string, Sink]>([
    [commands[0]!, natsSink({ servers: "nats://127.0.0.1:1" })],
    [commands[1]!, redisSink({ url: "redis://127.0.0.1:1" })],
    [commands[2]!, kafkaSink({ brokers: ["127.0.0.1:1"] })],
  ])("is named with its command: %s", async (command, sink) => {
    const error = await sink.send([events[0]!], context()).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: "TAPE_PEER_MISSING", details: { command } });
    await sink.close!();
  });

  it("has the version of the command in package.json, and is optional there", () => {
    const { peerDependencies, peerDependenciesMeta } = manifest;
    const ranges = Object.entries(peerDependencies).map(([name, range]) => `${name}@${range}`);
    const installed = commands.flatMap((command) => command.split(" ").slice(2));
    expect(ranges).toEqual(expect.arrayContaining(installed));
    for (const name of Object.keys(peerDependencies)) {
      expect(peerDependenciesMeta).toHaveProperty([name], { optional: true });
    }
  });

  it("differs from one that fails to load", async () => {
    await expect(loadPeer("data:text/javascript,throw new Error('broken')", "x")).rejects.toThrow("broken");
    await expect(loadPeer("node:path", "x")).resolves.toHaveProperty("join");
  });
});

describe("options of a broker's sink", () => {
  it.each([
    ["servers or connection", () => natsSink({})],
    ["url or client", () => redisSink({})],
    ["brokers or producer", () => kafkaSink({})],
    ["prefix", () => natsSink({ servers: "x", prefix: "a.*" })],
    ["timeoutMs", () => natsSink({ servers: "x", timeoutMs: 0 })],
    ["stream", () => redisSink({ url: "x", stream: "a b" })],
    ["maxLength", () => redisSink({ url: "x", maxLength: 1.5 })],
    ["expireSeconds", () => redisSink({ url: "x", expireSeconds: -1 })],
    ["topic", () => kafkaSink({ brokers: ["x"], topic: "a/b" })],
    ["topic", () => pubsubSink({ topic: "tape" })],
    ["endpoint", () => pubsubSink({ topic, endpoint: "http://192.0.2.1:8085" })],
    ["endpoint", () => pubsubSink({ topic, endpoint: "pubsub" })],
  ])("are checked before anything is sent: %s", (name, make) => {
    expect(make).toThrow(expect.objectContaining({ code: "TAPE_BAD_INPUT", message: expect.stringContaining(name) }));
  });
});

describe("sinks of brokers in tape.yaml", () => {
  const settingsOf = (sink: object) =>
    configSchema.parse({ tape: { events: { sinks: { bus: sink } } } }).tape.events.sinks.bus!;
  const sinkFrom = (sink: object) => configuredFanout("bus", settingsOf(sink), undefined, silentLog).sink;

  it("labels in tape.yaml restrict a sink to some runs", () => {
    const { filter } = configuredFanout(
      "bus",
      settingsOf({ kind: "log", labels: ["region:eu", "at:a:b"] }),
      undefined,
      silentLog,
    );
    expect(filter).toEqual({ labels: { region: "eu", at: "a:b" } });
    expect(() => settingsOf({ kind: "log", labels: ["region"] })).toThrow("LABEL:VALUE");
  });

  it.each([
    [{ kind: "nats", servers: ["nats://a"], prefix: "x", token: "t" }, "nats x.>"],
    [{ kind: "redis", url: "redis://a", stream: "s", per_journal: true, max_length: 5 }, "redis s"],
    [{ kind: "kafka", servers: ["a:1"], topic: "t", user: "u", password: "p", tls: true }, "kafka t"],
    [{ kind: "pubsub", topic }, `pubsub ${topic}`],
  ])("%o is a sink", (sink, label) => expect(sinkFrom(sink).label).toBe(label));

  it.each([
    ["nats", "servers"],
    ["redis", "url"],
    ["kafka", "servers"],
    ["pubsub", "topic"],
  ])("%s without %s is refused", (kind, field) => {
    expect(() => sinkFrom({ kind })).toThrow(
      expect.objectContaining({ code: "TAPE_BAD_CONFIG", details: { sink: "bus", field } }),
    );
  });

  it.each(["nats", "redis", "kafka"] as const)("%s fails at the start if its client is not installed", async (kind) => {
    await expect(assertClient(kind)).rejects.toMatchObject({ code: "TAPE_PEER_MISSING" });
    await expect(assertClient("pubsub")).resolves.toBeUndefined();
  });
});

describe("the Kafka sink with a fake producer", () => {
  /** Answers as a broker does that takes no message with "large" in it, and is away for a key. */
  const producer = (sent: string[]) => ({
    async send({ messages, acks }: { messages: KafkaMessage[]; acks: number }) {
      expect(acks).toBe(-1);
      const nested = (apiCode: number) => Object.assign(new Error(`code ${apiCode}`), { errors: [{ apiCode }] });
      if (messages.some(({ value }) => value.includes("large"))) throw nested(10);
      if (messages.some(({ key }) => key === "away")) throw nested(6);
      sent.push(...messages.map(({ headers }) => headers.ce_sequence!));
    },
  });

  it("a broker that refuses one event refuses the batch, and the lane finds it", async () => {
    const sent: string[] = [];
    const sink = kafkaSink({ producer: producer(sent) });
    const large = eventOf("run-1", 2, { data: dataOf("run-1", 2, "large") });
    const never = { never: expect.any(Error), code: "refused" };
    expect(await sink.send([eventOf("run-1", 1), large], context())).toEqual([never, never]);
    expect(await sink.send([eventOf("run-1", 1)], context())).toEqual(["ok"]);
    expect(await sink.send([large], context())).toEqual([never]);
    expect(sent.map(Number)).toEqual([1]);
  });

  it("lets everything wait for a broker that is away", async () => {
    const sink = kafkaSink({ producer: producer([]) });
    await expect(sink.send([eventOf("away", 1)], context())).rejects.toThrow("code 6");
  });
});

describe("the Pub/Sub sink on a server that answers what a test chooses", () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.close();
    server?.closeAllConnections();
    delete process.env.GCE_METADATA_HOST;
  });

  interface HttpCall {
    readonly request: IncomingMessage;
    readonly body: string;
  }
  async function serving(
    answer: (call: HttpCall) => [status: number, body?: object, headers?: Record<string, string>],
  ) {
    server = createServer(async (request, response) => {
      let body = "";
      for await (const part of request) body += part;
      const [status, content = {}, headers = {}] = answer({ request, body });
      response.writeHead(status, headers).end(JSON.stringify(content));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    return `127.0.0.1:${port}`;
  }
  const sinkAt = (host: string) => pubsubSink({ topic, endpoint: `http://${host}`, token: () => undefined });

  it.each([
    [400, "never"],
    [413, "never"],
    [401, "later"],
    [403, "later"],
    [404, "later"],
    [429, "later"],
    [503, "later"],
  ])("an answer of %i means %s for the whole batch", async (status, verdict) => {
    const sink = sinkAt(await serving(() => [status]));
    const deliveries = (await sink.send(events, context())) as Delivery[];
    expect(deliveries).toHaveLength(events.length);
    for (const delivery of deliveries) expect(delivery).toHaveProperty(verdict);
  });

  it("ends when the fan-out stops, or has waited too long", async () => {
    const called = Promise.withResolvers<void>();
    const listening = createServer(() => called.resolve()).listen(0, "127.0.0.1");
    await once(listening, "listening");
    server = listening;
    const { port } = listening.address() as { port: number };
    const stop = new AbortController();
    const sink = sinkAt(`127.0.0.1:${port}`);
    const sending = expect(sink.send([events[0]!], { ...context(), signal: stop.signal })).rejects.toThrow("stopped");
    await called.promise;
    stop.abort(new Error("stopped"));
    await sending;
  });

  it("waits as long as the server asks for", async () => {
    const sink = sinkAt(await serving(() => [429, {}, { "retry-after": "7" }]));
    expect(await sink.send([events[0]!], context())).toEqual([{ later: expect.any(String), afterMs: 7_000 }]);
  });

  it("asks the metadata server for a token, and again a minute before it expires", async () => {
    const seen: string[] = [];
    const host = await serving(({ request }) => {
      seen.push(request.headers.authorization ?? `${request.headers["metadata-flavor"]}`);
      return [200, { access_token: `t${seen.length}`, expires_in: 3_600 }];
    });
    process.env.GCE_METADATA_HOST = host;
    const clock = new ManualClock();
    const sink = pubsubSink({ topic, endpoint: `http://${host}`, clock });
    await sink.send([events[0]!], context());
    await clock.elapse(3_539_000);
    await sink.send([events[0]!], context());
    await clock.elapse(2_000);
    await sink.send([events[0]!], context());
    expect(seen).toEqual(["Google", "Bearer t1", "Bearer t1", "Google", "Bearer t4"]);
  });
});
