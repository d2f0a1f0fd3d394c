import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Ajv from "ajv/dist/2020.js";
import { type CloudEvent, HTTP } from "cloudevents";
import { Webhook } from "standardwebhooks";
import { expect, it, onTestFinished } from "vitest";
import type { TapeEvent } from "../../src/events/event.ts";
import { eventJsonSchema, eventKinds, eventsJsonSchema } from "../../src/events/schema.ts";
import { cloudEventsSink } from "../../src/events/sinks/cloudevents.ts";
import { webhookSink } from "../../src/events/sinks/webhook.ts";
import { attributesOf } from "../../src/events/sinks/wire.ts";
import { goldenEvents } from "../events/golden.ts";
import { eventOf } from "./sending.ts";

/** What receivers read with the libraries of Standard Webhooks, CloudEvents and JSON Schema. */

interface ReceivedRequest {
  readonly headers: Record<string, string>;
  readonly body: string;
}

async function receiver() {
  const received: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    received.push({ headers: request.headers as Record<string, string>, body: Buffer.concat(chunks).toString() });
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, allow: ["127.0.0.1"], received };
}

const context = { signal: new AbortController().signal, attempt: 1, token: 1n };
const event = eventOf("größe 7%", 3, { traceparent: "00-923dc8dc521f2cdc887aeab810d9e3ea-70ea81e7196536a6-01" });

it("standardwebhooks verifies what the webhook sink sends, by either secret, and refuses a changed body", async () => {
  const [old, next, other] = [7, 8, 9].map((byte) => `whsec_${Buffer.alloc(24, byte).toString("base64")}`);
  const { received, ...target } = await receiver();
  const sink = webhookSink({ ...target, secrets: [old!, next!] });
  onTestFinished(() => sink.close?.());
  expect(await sink.send([event], context)).toEqual(["ok"]);
  const [{ headers, body }] = received as [ReceivedRequest];
  for (const secret of [old!, next!]) expect(new Webhook(secret).verify(body, headers)).toEqual(event);
  expect(() => new Webhook(other!).verify(body, headers)).toThrow("No matching signature");
  expect(() => new Webhook(old!).verify(body.replace("step", "stop"), headers)).toThrow("No matching signature");
});

it("cloudevents reads what the sink sends in every mode", async () => {
  const { received, ...target } = await receiver();
  for (const mode of ["binary", "structured", "batch"] as const) {
    const sink = cloudEventsSink({ ...target, mode });
    onTestFinished(() => sink.close?.());
    await sink.send([event], context);
  }
  expect(received).toHaveLength(3);
  for (const [k, message] of received.entries()) {
    const read = [HTTP.toEvent<TapeEvent["data"]>(message)].flat() as CloudEvent<TapeEvent["data"]>[];
    expect(read).toHaveLength(1);
    expect(read[0]!.validate()).toBe(true);
    const { data, ...attributes } = JSON.parse(JSON.stringify(read[0])) as Record<string, unknown>;
    expect(data).toEqual(event.data);
    // Headers are percent-encoded by the HTTP binding, and this library leaves the decoding to its caller.
    const decoded = Object.entries(attributes).map(([name, value]) => [
      name,
      k === 0 ? decodeURIComponent(String(value)) : String(value),
    ]);
    expect(Object.fromEntries(decoded)).toEqual(Object.fromEntries(attributesOf(event)));
  }
});

it("ajv compiles the schemas, accepts the golden events, and refuses changed ones", () => {
  const ajv = new Ajv.default({ strict: true, allowUnionTypes: true });
  ajv.addSchema(eventsJsonSchema(), "events");
  const golden = goldenEvents();
  expect(golden.map(({ type }) => type)).toEqual(eventKinds.map((kind) => `dev.tape.${kind}`));
  for (const { dataschema, data, type } of golden) {
    const validate = ajv.getSchema(dataschema);
    expect(validate, type).toBeDefined();
    expect(validate!(data), `${type}: ${JSON.stringify(validate!.errors)}`).toBe(true);
    expect(validate!({ ...data, record: 7, storeEpoch: "x" }), type).toBe(false);
  }
  expect(ajv.validateSchema(eventJsonSchema("run.ended"))).toBe(true);
});
