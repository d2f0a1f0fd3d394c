import { createHmac, createPublicKey, verify } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { TapeEvent } from "../../src/events/event.ts";
import { cloudEventsSink, requestOf } from "../../src/events/sinks/cloudevents.ts";
import { signWebhook, webhookSink } from "../../src/events/sinks/webhook.ts";

const allow = ["127.0.0.1"];
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

interface ReceivedRequest {
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  readonly socket: unknown;
}

/** A real server on loopback. `respond` decides the status of each request. */
async function receiver(respond: (count: number) => number | "hang" | "reset" = () => 204, headers = {}) {
  const received: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    received.push({ headers: request.headers, body: Buffer.concat(chunks).toString(), socket: request.socket });
    const status = respond(received.length);
    if (status === "reset") request.socket.destroy();
    else if (status !== "hang") response.writeHead(status, headers).end(status >= 400 ? "why" : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks?key=hidden`, received };
}

const event: TapeEvent = {
  specversion: "1.0",
  id: "17:5:1794848992501",
  source: "/tape/store/acme",
  type: "dev.tape.run.ended",
  subject: "größe 7%",
  time: "2026-11-15T00:00:00.000Z",
  datacontenttype: "application/json",
  dataschema: "urn:tape:event:run.ended:1",
  partitionkey: "r",
  sequence: "0000000005",
  tapeepoch: 0,
  tapejournal: "17",
  tapetoken: "3",
  data: { lease: "x" },
};
const context = () => ({ signal: new AbortController().signal, attempt: 1, token: 3n });
const ended = (sink: { close?(): Promise<void> }) => onTestFinished(() => void sink.close?.());

describe("a webhook", () => {
  it("signs as Standard Webhooks does", () => {
    const body = '{"test": 2432232314}';
    const signature = signWebhook(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
    expect(signature).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  it("posts one event with two signatures while a secret is replaced", async () => {
    const { url, received } = await receiver();
    const second = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
    const sink = webhookSink({ url, secrets: [secret, second], allow });
    ended(sink);
    expect(await sink.send([event], context())).toEqual(["ok"]);
    const [{ headers, body }] = received as [ReceivedRequest];
    expect(JSON.parse(body)).toEqual(event);
    expect(headers["webhook-id"]).toBe(event.id);
    const stamp = headers["webhook-timestamp"] as string;
    expect(Math.abs(Number(stamp) * 1_000 - Date.now())).toBeLessThan(60_000);
    const own = (key: Buffer) =>
      `v1,${createHmac("sha256", key).update(`${event.id}.${stamp}.${body}`).digest("base64")}`;
    expect(headers["webhook-signature"]).toBe(
      `${own(Buffer.from(secret.slice(6), "base64"))} ${own(Buffer.alloc(24, 7))}`,
    );
  });

  it("signs with an ed25519 key, too", () => {
    const seed = Buffer.alloc(32, 9);
    const signature = signWebhook(`whsk_${seed.toString("base64")}`, "id", "5", "{}");
    expect(signature.startsWith("v1a,")).toBe(true);
    const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
    const key = createPublicKey({ key: pkcs8, format: "der", type: "pkcs8" } as never);
    expect(verify(null, Buffer.from("id.5.{}"), key, Buffer.from(signature.slice(4), "base64"))).toBe(true);
  });

  it.each([
    [[], "1 to 4"],
    [["whsec_c2hvcnQ="], "at least 24 bytes"],
    [["secret"], "whsec_ or whsk_"],
  ])("refuses the secrets %j without printing them", (secrets, message) => {
    expect(() => webhookSink({ url: "https://a.example", secrets })).toThrow(message);
    try {
      webhookSink({ url: "https://a.example", secrets });
    } catch (error) {
      expect(String(error)).not.toContain("c2hvcnQ");
    }
  });

  it.each([
    [204, "ok"],
    [400, "never"],
    [413, "never"],
    [415, "never"],
    [422, "never"],
    [410, "pause"],
    ...[301, 401, 403, 404, 408, 425, 429, 500, 503].map((status) => [status, "later"] as const),
  ] as const)("takes %i as %s", async (status, meaning) => {
    const { url } = await receiver(() => status, { "retry-after": "7", location: "http://other.example" });
    const sink = webhookSink({ url, secrets: [secret], allow });
    ended(sink);
    const [delivery] = (await sink.send([event], context())) as [unknown];
    if (meaning === "ok") return expect(delivery).toBe("ok");
    expect(Object.keys(delivery as object)[0]).toBe(meaning);
    expect(JSON.stringify(delivery)).not.toContain("hidden");
    if (meaning === "later") expect(delivery).toMatchObject({ afterMs: 7_000 });
    return undefined;
  });

  it("keeps its connection, and a lost one means later", async () => {
    const { url, received } = await receiver((count) => (count === 3 ? "reset" : 204));
    const sink = webhookSink({ url, secrets: [secret], allow });
    ended(sink);
    const deliveries = [];
    for (let k = 0; k < 4; k++) deliveries.push(...((await sink.send([event], context())) as unknown[]));
    expect(deliveries.map((one) => (one === "ok" ? "ok" : "later"))).toEqual(["ok", "ok", "later", "ok"]);
    expect(received[0]!.socket).toBe(received[1]!.socket);
  });

  it("reaches no private address unless it is allowed, and times out", async () => {
    const { url, received } = await receiver(() => "hang");
    const closed = webhookSink({ url, secrets: [secret] });
    ended(closed);
    expect(JSON.stringify(await closed.send([event], context()))).toContain("later");
    expect(received.length).toBe(0);
    const slow = webhookSink({ url, secrets: [secret], allow, timeout: 50 });
    ended(slow);
    const [delivery] = (await slow.send([event], context())) as [{ later: unknown }];
    expect(String(delivery.later)).toContain("no response within 50 ms");
  });
});

describe("CloudEvents", () => {
  it("go in batches, structured or binary", async () => {
    const { url, received } = await receiver();
    for (const mode of ["batch", "structured", "binary"] as const) {
      const sink = cloudEventsSink({ url, mode, allow });
      ended(sink);
      await sink.send(mode === "batch" ? [event, { ...event, id: "17:6:1" }] : [event], context());
    }
    const [batch, structured, binary] = received as [ReceivedRequest, ReceivedRequest, ReceivedRequest];
    expect(batch.headers["content-type"]).toBe("application/cloudevents-batch+json");
    expect(JSON.parse(batch.body)).toEqual([event, { ...event, id: "17:6:1" }]);
    expect(structured.headers["content-type"]).toBe("application/cloudevents+json");
    expect(JSON.parse(structured.body)).toEqual(event);
    expect(binary.headers).toMatchObject({
      ...{ "content-type": "application/json", "ce-id": event.id, "ce-specversion": "1.0", "ce-type": event.type },
      ...{ "ce-subject": "gr%C3%B6%C3%9Fe%207%25", "ce-partitionkey": "r", "ce-tapeepoch": "0", "ce-tapetoken": "3" },
    });
    expect(decodeURIComponent(binary.headers["ce-subject"] as string)).toBe(event.subject);
    expect(JSON.parse(binary.body)).toEqual(event.data);
  });

  it("have names of attributes that the specification allows", () => {
    const { headers } = requestOf("binary", [event]);
    const names = Object.keys(headers).filter((name) => name.startsWith("ce-"));
    expect(names.every((name) => /^ce-[a-z0-9]{1,20}$/.test(name))).toBe(true);
  });

  it("refuse what is larger than a request may be, and unknown options", async () => {
    const { url, received } = await receiver();
    const sink = cloudEventsSink({ url, allow, maxBytes: 100 });
    ended(sink);
    expect(await sink.send([event], context())).toMatchObject([{ code: "too_large" }]);
    expect(received).toEqual([]);
    expect(() => cloudEventsSink({ url, mode: "best" as never })).toThrow("mode must be");
    expect(() => cloudEventsSink({ url, batch: 0 })).toThrow("batch must be");
    expect(() => cloudEventsSink({ url: "ftp://a.example" })).toThrow("neither http: nor https:");
  });
});
