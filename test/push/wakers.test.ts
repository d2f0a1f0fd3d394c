import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { configuredAlarms, configuredWaker } from "../../src/push/configured.ts";
import { pushHandler } from "../../src/push/handler.ts";
import { unverified } from "../../src/push/verify/secret.ts";
import { type CloudTasksWakerOptions, cloudTasksWaker } from "../../src/push/wakers/cloud-tasks.ts";
import { natsWaker, natsWakeUpConsumer, natsWakeUpStream, runWakeUps } from "../../src/push/wakers/nats.ts";
import { pubsubWaker } from "../../src/push/wakers/pubsub.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { FakeCloudTasks, type TaskCall } from "../../testkit/kit/fake-cloud-tasks.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { queue } from "../alarm/deployment.ts";
import { project, Sidecar } from "../cli/sidecar.ts";
import { pushStage } from "./stage.ts";

const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `hello ${name}`));
const runner = createRunner({ workflows: [hello] });
const verify = unverified("a test");

interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A server that answers by a function, and its address. */
async function served(answer: (request: ReceivedRequest) => Response | Promise<Response>): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const given = await answer({ path: request.url!, headers: request.headers, body });
    response.writeHead(given.status, Object.fromEntries(given.headers)).end(await given.text());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("cloudTasksWaker, against our fake of the API", () => {
  const url = "https://push.example/{reactor}";
  const requestOf = ({ url: to, headers, body }: TaskCall): Request =>
    new Request(to, { method: "POST", headers, body });

  it("creates a task for each request, whose call wakes the reactor", async () => {
    const stage = await pushStage();
    const app = await stage.app(runner);
    const handler = pushHandler(app, { reactors: ["recovery", "outbox"], verify, log: stage.log });
    const calls: TaskCall[] = [];
    const answers: number[] = [];
    const dispatch = async (call: TaskCall): Promise<number> => {
      calls.push(call);
      answers.push((await handler(requestOf(call))).status);
      return answers.at(-1)!;
    };
    const tasks = new FakeCloudTasks({ clock: systemClock, dispatch });
    const options = { queue, url, serviceAccount: "waker@p.iam", token: async () => "t", fetch: tasks.fetch };
    await app.start(hello, "Ada", { id: "h" });
    await cloudTasksWaker(options).wake("recovery", 3);
    expect(await (await app.run("h")).result()).toBe("hello Ada");
    await expect.poll(() => answers).toEqual([204, 204, 204]);
    expect(tasks.conflicts).toBe(0);
    expect(calls[0]).toMatchObject({
      url: "https://push.example/recovery",
      body: '{"reactor":"recovery"}',
      headers: { authorization: "Bearer fake waker@p.iam https://push.example/recovery" },
    });
  });

  it("fails if the service refuses or does not answer, and repeats nothing", async () => {
    const time = new VirtualTime();
    const options = { queue, url, token: async () => "t", clock: time };
    const refusing = new FakeCloudTasks({ clock: time, dispatch: async () => 204, fault: () => "refuse" });
    await expect(time.during(cloudTasksWaker({ ...options, fetch: refusing.fetch }).wake("outbox", 1))).rejects.toThrow(
      "503",
    );
    const silent = (_: string, { signal }: RequestInit): Promise<Response> =>
      new Promise((_resolve, reject) => signal!.addEventListener("abort", () => reject(signal!.reason)));
    await expect(time.during(cloudTasksWaker({ ...options, fetch: silent }).wake("outbox", 1))).rejects.toThrow(
      "no response within",
    );
    expect(refusing.created).toBe(0);
  });

  it("refuses wrong options before anything is sent", () => {
    for (const wrong of [{ queue: "tape" }, { url: "push.example" }, { dispatchDeadline: "5s" }, { colour: "red" }]) {
      const options = { queue, url, ...wrong } as CloudTasksWakerOptions;
      expect(() => cloudTasksWaker(options), JSON.stringify(wrong)).toThrow("TAPE_BAD_INPUT: cloudTasksWaker");
    }
  });
});

describe("pubsubWaker", () => {
  const topic = "projects/p/topics/wakeups";

  it("publishes a message for each request in one call, with the reactor as attribute", async () => {
    const received: ReceivedRequest[] = [];
    const endpoint = await served((request) => {
      received.push(request);
      return new Response(null, { status: 200 });
    });
    await pubsubWaker({ topic, endpoint, token: () => "secret" }).wake("outbox", 3);
    expect(received).toHaveLength(1);
    const [{ path, headers, body } = { path: "", headers: {}, body: "{}" }] = received;
    expect([path, headers.authorization]).toEqual([`/v1/${topic}:publish`, "Bearer secret"]);
    const message = { data: Buffer.from('{"reactor":"outbox"}').toString("base64"), attributes: { reactor: "outbox" } };
    expect(JSON.parse(body)).toEqual({ messages: [message, message, message] });
    // What a push subscription makes of it wakes that reactor and no other.
    const woken: string[] = [];
    const react = async (name: string) => {
      woken.push(name);
      return { found: 0, done: 0, failed: 0, lagMs: 0, more: false, surrendered: [] };
    };
    const handler = pushHandler({ react }, { reactors: ["recovery", "outbox"], verify, log: () => {} });
    const pushed = JSON.stringify({
      message: { ...message, messageId: "1" },
      subscription: "projects/p/subscriptions/s",
    });
    await handler(new Request("http://x.invalid/", { method: "POST", body: pushed }));
    expect(woken).toEqual(["outbox"]);
  });

  it("fails with the answer of the service, and sends its token to no server in the clear", async () => {
    const endpoint = await served(() => new Response(null, { status: 403 }));
    await expect(pubsubWaker({ topic, endpoint, token: () => "t" }).wake("outbox", 1)).rejects.toThrow("403");
    expect(() => pubsubWaker({ topic, endpoint: "http://pubsub.example" })).toThrow("TAPE_BAD_INPUT: pubsubWaker");
    expect(() => pubsubWaker({ topic: "wakeups" })).toThrow("TAPE_BAD_INPUT: pubsubWaker");
  });
});

describe("natsWaker, without a server", () => {
  it("publishes to the subject that the stream has and the consumer reads", async () => {
    const published: [string, string][] = [];
    const jetstream = { publish: async (subject: string, payload: string) => void published.push([subject, payload]) };
    await natsWaker({ jetstream, tenant: "acme" }).wake("outbox", 2);
    const { filter_subject: subject } = natsWakeUpConsumer("acme", "outbox");
    expect(published).toEqual([
      [subject, '{"reactor":"outbox"}'],
      [subject, '{"reactor":"outbox"}'],
    ]);
    expect(natsWakeUpStream().subjects).toEqual(["tape.wakeups.>"]);
    expect(subject).toMatch(/^tape\.wakeups\.[0-9a-f]{16}\.outbox$/);
    expect(natsWakeUpConsumer("other", "outbox").filter_subject).not.toBe(subject);
    await natsWaker({ jetstream }).wake("outbox", 1_000);
    expect(published).toHaveLength(12); // more than the stream would keep change nothing
  });

  it("a wake-up is confirmed once the handler has answered with 2xx, and returned otherwise", async () => {
    const ends: string[] = [];
    const message = (text: string) => ({
      data: new TextEncoder().encode(text),
      ack: () => void ends.push("ack"),
      nak: (ms?: number) => void ends.push(`nak ${ms}`),
    });
    const messages = [message('{"reactor":"outbox"}'), message('{"reactor":"timers"}'), message("{}")];
    const statuses = [503, 204];
    const bodies: string[] = [];
    const handler = async (request: Request): Promise<Response> => {
      bodies.push(await request.text());
      const status = statuses.shift();
      if (status === undefined) throw new Error("broken");
      return new Response(null, { status });
    };
    const lines: string[] = [];
    const consume = async () => ({
      close: async () => {},
      async *[Symbol.asyncIterator]() {
        yield* messages;
      },
    });
    const running = await runWakeUps({ consume }, handler, (_, event) => void lines.push(event));
    await running.stop();
    expect(bodies).toEqual(['{"reactor":"outbox"}', '{"reactor":"timers"}', "{}"]);
    expect(ends).toEqual(["nak 1000", "ack", "nak 1000"]);
    expect(lines).toEqual(["waker.failed", "waker.failed"]);
  });

  it("needs servers or a client, and a valid prefix", () => {
    expect(() => natsWaker({})).toThrow("TAPE_BAD_INPUT: natsWaker: give either servers or jetstream");
    expect(() => natsWaker({ servers: "nats://x", prefix: "a b" })).toThrow("TAPE_BAD_INPUT: natsWaker: prefix");
  });
});

describe("wakers and alarms of tape.yaml", () => {
  const bounds = { batch: 10, concurrency: 10, timeout_s: 65 };

  it.each([
    [{ kind: "webhook" }, "url"],
    [{ kind: "pubsub" }, "topic"],
    [{ kind: "cloud_tasks", url: "https://x" }, "queue"],
    [{ kind: "cloud_tasks", queue }, "url"],
    [{ kind: "nats" }, "servers"],
  ] as const)("%j needs its %s", async (settings, missing) => {
    await expect(configuredWaker({ ...bounds, ...settings }, "default", () => {})).rejects.toThrow(
      `TAPE_BAD_CONFIG: tape.push.waker.${missing} is missing`,
    );
  });

  it("the client of NATS must be installed at the start", async () => {
    const servers = ["nats://127.0.0.1:1"];
    const missing = expect.objectContaining({ code: "TAPE_PEER_MISSING" });
    await expect(configuredWaker({ ...bounds, kind: "nats", servers }, "default", () => {})).rejects.toEqual(missing);
    await expect(configuredAlarms({ kind: "nats", servers })).rejects.toEqual(missing);
    await expect(configuredAlarms({ kind: "cloud_tasks", queue })).rejects.toThrow("tape.push.alarms.url is missing");
  });

  it("tape-reactors --announce sends tasks with the token of the machine", async () => {
    const calls: TaskCall[] = [];
    const dispatch = async (call: TaskCall): Promise<number> => calls.push(call) && 204;
    const tasks = new FakeCloudTasks({ clock: systemClock, dispatch });
    const answer = Response.json({ access_token: "machine", expires_in: 3_600 });
    let endpoint = "";
    endpoint = await served(async ({ path, headers, body }) => {
      if (path.startsWith("/computeMetadata/")) return answer.clone();
      expect(headers.authorization).toBe("Bearer machine");
      const sent = { method: "POST", body, headers: { authorization: String(headers.authorization) } };
      return tasks.fetch(`${endpoint}${path}`, sent);
    });
    const waker = `{ kind: cloud_tasks, queue: ${queue}, endpoint: "${endpoint}", url: "https://push.example/{reactor}", service_account: waker@p.iam }`;
    const yaml = `tape:\n  reactors: { recovery: { mode: push } }\n  push: { waker: ${waker} }\n`;
    const folder = project({ "tape.yaml": yaml });
    const url = `sqlite:${join(folder, "tape.db")}`;
    const store = await openStore(url);
    const app = await Tape.open({ store, runner, work: false, log: () => {} });
    onTestFinished(async () => {
      await app.close();
      await store.close();
    });
    await app.start(hello, "Ada");
    const env = { TAPE_STORE_URL: url, GCE_METADATA_HOST: endpoint.replace("http://", "") };
    const announcer = new Sidecar(folder, ["--announce"], env);
    await announcer.until(() => calls.length > 0 || undefined);
    expect(announcer.logged("announcer.standing_by")).toMatchObject({ reactors: ["recovery"], waker: "cloud_tasks" });
    expect(calls[0]).toMatchObject({ url: "https://push.example/recovery", body: '{"reactor":"recovery"}' });
    expect(await announcer.stop()).toBe(0);
  });
});
