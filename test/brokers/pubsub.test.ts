import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pubsubSink } from "../../src/events/sinks/pubsub.ts";
import { Tape } from "../../src/host/tape.ts";
import { toNode } from "../../src/push/adapters.ts";
import { announce } from "../../src/push/announce.ts";
import { pushHandler } from "../../src/push/handler.ts";
import { unverified } from "../../src/push/verify/secret.ts";
import { pubsubWaker } from "../../src/push/wakers/pubsub.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { context, eventOf, feedOf, lane, sequences, upTo } from "./sending.ts";
import { type Broker, startPubsubEmulator } from "./servers/servers.ts";

interface PulledMessage {
  readonly data: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly orderingKey?: string;
}

describe("the Pub/Sub sink on Google's emulator", () => {
  let emulator: Broker;
  beforeAll(async () => {
    emulator = await startPubsubEmulator();
  });
  afterAll(() => emulator.stop());

  const call = async (method: string, path: string, body: object = {}): Promise<unknown> => {
    const init = { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`${emulator.url}/v1/${path}`, init);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };

  async function opened(name: string, subscription: object = {}) {
    const topic = `projects/p/topics/${name}`;
    await call("PUT", topic);
    const path = `projects/p/subscriptions/${name}`;
    await call("PUT", path, { topic, enableMessageOrdering: true, ackDeadlineSeconds: 10, ...subscription });
    /** Pulls and acknowledges until `count` have come. */
    const pulled = async (count: number): Promise<PulledMessage[]> => {
      const found: PulledMessage[] = [];
      while (found.length < count) {
        const answer = (await call("POST", `${path}:pull`, { maxMessages: 1_000 })) as {
          receivedMessages?: { ackId: string; message: PulledMessage }[];
        };
        const messages = answer.receivedMessages ?? [];
        found.push(...messages.map(({ message }) => message));
        const ackIds = messages.map(({ ackId }) => ackId);
        if (ackIds.length > 0) await call("POST", `${path}:acknowledge`, { ackIds });
      }
      return found;
    };
    return { sink: pubsubSink({ topic, endpoint: emulator.url, token: () => undefined }), pulled };
  }
  const sent = (messages: readonly PulledMessage[]) =>
    messages.map(({ attributes }) => ({ subject: attributes["ce-subject"]!, sequence: attributes["ce-sequence"]! }));

  it("publishes each run in order under its key", async () => {
    const { sink, pulled } = await opened("ordered");
    expect(await lane(sink, feedOf(6, 30), 50)).toEqual({ waits: 0, refused: [] });
    const messages = await pulled(180);
    for (const run of Object.values(sequences(sent(messages)))) expect(run).toEqual(upTo(30));
    expect(new Set(messages.map(({ orderingKey }) => orderingKey)).size).toBe(6);
  });

  it("carries the attributes of CloudEvents beside the data", async () => {
    const { sink, pulled } = await opened("binary");
    const event = eventOf("run-7", 3);
    await sink.send([event], context());
    const [message] = await pulled(1);
    expect(JSON.parse(Buffer.from(message!.data, "base64").toString())).toEqual(event.data);
    const { data: _, ...attributes } = event;
    const expected = Object.entries(attributes).map(([name, value]) => [`ce-${name}`, String(value)]);
    expect(message!.attributes).toMatchObject({ "content-type": "application/json", ...Object.fromEntries(expected) });
  });

  it("takes a run whose id is longer than an ordering key", async () => {
    const { sink, pulled } = await opened("long");
    const run = "ü".repeat(512);
    await lane(sink, [eventOf("run-1", 1, { partitionkey: run.repeat(2), subject: run.repeat(2) })]);
    const [message] = await pulled(1);
    expect(message!.orderingKey).toMatch(/^[0-9a-f]{64}$/);
    expect(message!.attributes["ce-subject"]).toBeUndefined();
  });

  it("waits while the topic is absent and while the emulator is away", async () => {
    const topic = "projects/p/topics/absent";
    const sink = pubsubSink({ topic, endpoint: emulator.url, token: () => undefined });
    const [absent] = (await sink.send([eventOf("run-1", 1)], context())) as [{ later: Error }];
    expect(String(absent.later)).toContain("404");
    const away = pubsubSink({ topic, endpoint: "http://127.0.0.1:1", token: () => undefined });
    await expect(away.send([eventOf("run-1", 1)], context())).rejects.toThrow();
  });

  it("a subscription pushes the event again after a 500, until it is taken", async () => {
    const answers = [500, 204];
    const bodies: string[] = [];
    const receiver = createServer(async (request, response) => {
      let body = "";
      for await (const part of request) body += part;
      bodies.push(body);
      response.writeHead(answers.shift() ?? 204).end();
    }).listen(0, "127.0.0.1");
    await once(receiver, "listening");
    const { port } = receiver.address() as { port: number };
    const pushConfig = { pushEndpoint: `http://127.0.0.1:${port}/wake` };
    const { sink } = await opened("pushed", { pushConfig });
    await sink.send([eventOf("run-1", 1)], context());
    await expect.poll(() => bodies.length, { timeout: 30_000 }).toBe(2);
    const [first, second] = bodies.map((body) => JSON.parse(body).message as { messageId: string; attributes: object });
    expect(second!.messageId).toBe(first!.messageId);
    expect(second!.attributes).toMatchObject({ "ce-id": "101:1:1794848992501" });
    receiver.close();
  });

  it("wake-ups reach the handlers of their reactors by push subscriptions, and foreign ones do no harm", async () => {
    const send = effect("send", async (what: string) => `sent ${what}`, { dispatch: "outbox", allowUnsafe: "a test" });
    const order = workflow("order", async (tape, what: string) => tape.effect(send.with(what)));
    const runner = createRunner({ workflows: [order], effects: [send] });
    await using app = await Tape.open({ store: "memory:", runner, work: false, report: false });
    const topic = "projects/p/topics/wakeups";
    await call("PUT", topic);
    const woken: string[] = [];
    const servers = [];
    for (const name of ["recovery", "outbox"]) {
      const handler = pushHandler(app, { reactors: [name], verify: unverified("an emulator") });
      const server = createServer(
        toNode(async (request) => {
          const { message } = (await request.clone().json()) as { message: { attributes: { reactor: string } } };
          woken.push(`${name} ${message.attributes.reactor}`);
          return handler(request);
        }),
      ).listen(0, "127.0.0.1");
      await once(server, "listening");
      servers.push(server);
      const pushEndpoint = `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
      const filter = `attributes.reactor = "${name}"`;
      await call("PUT", `projects/p/subscriptions/wake-${name}`, { topic, filter, pushConfig: { pushEndpoint } });
    }
    const waker = pubsubWaker({ topic, endpoint: emulator.url, token: () => undefined });
    const announcer = await announce(app, { reactors: ["recovery", "outbox"], waker });
    const runs = [];
    for (const what of ["tea", "milk"]) runs.push(await app.start(order, what));
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(["sent tea", "sent milk"]);
    await announcer.stop();
    // The emulator stores a filter and does not apply it: so each handler also gets the wake-ups of the other one.
    expect(woken).toEqual(expect.arrayContaining(["recovery recovery", "outbox outbox"]));
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });
});
