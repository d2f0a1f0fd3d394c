import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { cloudTasksAlarms } from "../../src/alarm/cloud-tasks.ts";
import { pubsubSink } from "../../src/events/sinks/pubsub.ts";
import { runEventFanout } from "../../src/host/run-event-fanout.ts";
import { Tape } from "../../src/host/tape.ts";
import { pushHandler } from "../../src/push/handler.ts";
import { unverified } from "../../src/push/verify/secret.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { project } from "../cli/sidecar.ts";
import { fixture, inline } from "./snippets.ts";

const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `hello ${name}`));
const nap = workflow("nap", async (tape) => tape.sleep("2h"));
const runner = createRunner({ workflows: [hello, nap] });

interface GoogleRequest {
  readonly path: string;
  readonly body: Record<string, unknown>;
}

/** A FAKE of the REST API of Google Cloud: it accepts everything and keeps the requests. */
async function google(
  receive: (request: GoogleRequest) => Promise<void> = async () => {},
): Promise<{ url: string; requests: readonly GoogleRequest[] }> {
  const requests: GoogleRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const received = { path: request.url ?? "", body: JSON.parse(Buffer.concat(chunks).toString()) };
    requests.push(received);
    await receive(received);
    response.writeHead(200, { "content-type": "application/json" }).end('{"messageIds":[]}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

it("fanout.py: the journal of a store, named by its URL, goes to a topic of Pub/Sub", async () => {
  expect(fixture("fanout.py")).toContain("run_event_fanout(url, sink=PubSubSink(...))");
  const url = `sqlite:${join(project({}), "tape.db")}`;
  const { url: endpoint, requests } = await google();
  const sink = pubsubSink({ topic: "projects/p/topics/tape", endpoint, token: () => undefined });
  const fanout = await runEventFanout(url, { name: "bus", sink, from: "start" });
  onTestFinished(() => fanout.stop());
  await using app = await Tape.open({ store: url, runner, log: "silent" });
  await (await app.start(hello, "Ada", { id: "r" })).result();
  const types = () =>
    requests.flatMap(({ body }) =>
      (body.messages as { attributes: Record<string, string> }[]).map(({ attributes }) => attributes["ce-type"]),
    );
  await vi.waitFor(() => expect(types()).toEqual(["dev.tape.run.created", "dev.tape.run.ended"]), { timeout: 20_000 });
  expect(requests[0]!.path).toBe("/v1/projects/p/topics/tape:publish");
});

it("push-subscription: messages of the fan-out's topic wake the handler of their reactor", async () => {
  expect(inline.get("push-subscription")).toContain("Pub/Sub push subscription on a Cloud Run handler");
  await using app = await Tape.open({ store: "memory:", runner, work: false, log: "silent" });
  const handler = pushHandler(app, { reactors: ["recovery"], verify: unverified("a test calls its own handler") });
  const answers: [wants: string | undefined, status: number][] = [];
  // A subscription without a filter: each message goes to the handler, which reads the name of the reactor.
  const { url: endpoint } = await google(async ({ body }) => {
    for (const message of body.messages as { attributes: Record<string, string> }[]) {
      const pushed = JSON.stringify({ message, subscription: "projects/p/subscriptions/recovery" });
      const { status } = await handler(new Request("https://app.example/", { method: "POST", body: pushed }));
      answers.push([message.attributes["ce-tapewants"], status]);
    }
  });
  const sink = pubsubSink({ topic: "projects/p/topics/tape", endpoint, token: () => undefined });
  const fanout = await runEventFanout(app, { name: "wake", sink, from: "start", filter: { kinds: ["wants"] } });
  onTestFinished(() => fanout.stop());
  const run = await app.start(hello, "Ada", { id: "r" });
  expect(await run.result()).toBe("hello Ada");
  await vi.waitFor(() => expect(answers).toEqual([["recovery", 204]]));
});

it("cloud-tasks: an alarm is a task with a scheduleTime, and the timer's own time is one", async () => {
  expect(inline.get("cloud-tasks")).toBe("createTask + scheduleTime");
  const queue = "projects/p/locations/l/queues/tape";
  const tasks: { readonly path: string; readonly inMs: number; readonly url: string }[] = [];
  const alarms = cloudTasksAlarms({
    ...{ queue, url: "https://app.example/sweep", token: async () => "t" },
    fetch: async (url, init) => {
      const { task } = JSON.parse(String(init.body)) as {
        task: { scheduleTime: string; httpRequest: { url: string } };
      };
      const inMs = Date.parse(task.scheduleTime) - Date.now();
      tasks.push({ path: new URL(url).pathname, inMs, url: task.httpRequest.url });
      return new Response("{}", { status: 200 });
    },
  });
  await using app = await Tape.open({ store: "memory:", runner, log: "silent", serverless: { alarms } });
  await app.start(nap, undefined, { id: "r" });
  expect(tasks).toHaveLength(1); // armed before the commit, a few bounds ahead
  expect(tasks[0]).toMatchObject({ path: `/v2/${queue}/tasks`, url: "https://app.example/sweep" });
  expect(tasks[0]!.inMs).toBeLessThanOrEqual(20_000);
  await app.sweep();
  expect((await app.runs.get("r"))?.status).toBe("WAITING");
  const furthest = Math.max(...tasks.map(({ inMs }) => inMs));
  expect(Math.abs(furthest - 7_200_000)).toBeLessThan(60_000);
});
