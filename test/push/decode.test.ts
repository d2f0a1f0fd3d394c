import { describe, expect, it } from "vitest";
import { decodePush, type PushEvent, Unreadable } from "../../src/push/decode.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (headers: Record<string, string>, body: unknown = ""): PushEvent[] =>
  decodePush(new Headers(headers), bytes(typeof body === "string" ? body : JSON.stringify(body)));
const json = { "content-type": "application/json" };
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

const event = { specversion: "1.0", id: "17:5:1", source: "/tape/s/default", type: "dev.tape.run.ended" };

describe("a request is read as the event that it carries", () => {
  it("Pub/Sub in its envelope, with the attributes of a CloudEvent or without", () => {
    const message = { data: base64({ a: 1 }), messageId: "m-1", attributes: { tapewants: "outbox" }, orderingKey: "k" };
    const body = { message, subscription: "projects/p/subscriptions/s", deliveryAttempt: 2 };
    expect(decode(json, body)).toEqual([
      {
        form: "pubsub",
        id: "m-1",
        source: "projects/p/subscriptions/s",
        type: undefined,
        attributes: { tapewants: "outbox" },
        data: { a: 1 },
        wants: ["outbox"],
      },
    ]);
    const attributes = { "ce-id": "17:5:1", "ce-source": "/tape", "ce-type": "t", "ce-tapewants": "timers, recovery" };
    expect(decode(json, { ...body, message: { ...message, attributes } })).toMatchObject([
      { id: "17:5:1", source: "/tape", type: "t", wants: ["timers", "recovery"] },
    ]);
    expect(decode(json, { message: { attributes: {} }, subscription: "s" })).toMatchObject([
      { data: undefined, wants: [] },
    ]);
  });

  it("Pub/Sub without the envelope", () => {
    const headers = {
      "x-goog-pubsub-message-id": "m-2",
      "x-goog-pubsub-subscription-name": "projects/p/subscriptions/s",
      tapewants: "recovery",
    };
    expect(decode(headers, { a: 1 })).toMatchObject([
      { form: "pubsub", id: "m-2", source: "projects/p/subscriptions/s", data: { a: 1 }, wants: ["recovery"] },
    ]);
    expect(decode(headers, "no json")[0]!.data).toEqual(bytes("no json"));
  });

  it("CloudEvents: binary, structured and batch", () => {
    const binary = { "ce-specversion": "1.0", "ce-id": "17:5:1", "ce-source": "/tape/s%20x", "ce-type": "t", ...json };
    expect(decode({ ...binary, "ce-tapewants": "outbox" }, { a: 1 })).toMatchObject([
      { form: "cloudevent", id: "17:5:1", source: "/tape/s x", data: { a: 1 }, wants: ["outbox"] },
    ]);
    expect(decode({ ...binary, "content-type": "text/plain" }, "hello")).toMatchObject([{ data: "hello" }]);
    const structured = { "content-type": "application/cloudevents+json; charset=utf-8" };
    expect(decode(structured, { ...event, data: { a: 1 }, tapewants: "timers" })).toMatchObject([
      { id: "17:5:1", type: "dev.tape.run.ended", data: { a: 1 }, wants: ["timers"] },
    ]);
    expect(decode(structured, { ...event, data_base64: "AQI=" })[0]!.data).toEqual(Buffer.from([1, 2]));
    const batch = { "content-type": "application/cloudevents-batch+json" };
    expect(decode(batch, [event, { ...event, id: "2" }]).map(({ id }) => id)).toEqual(["17:5:1", "2"]);
  });

  it("Cloud Tasks, Cloud Scheduler, Standard Webhooks, plain JSON and nothing", () => {
    const task = { "x-cloudtasks-taskname": "t-1", "x-cloudtasks-queuename": "q" };
    expect(decode(task, { reactor: "outbox" })).toMatchObject([
      { form: "task", id: "t-1", source: "q", wants: ["outbox"] },
    ]);
    expect(decode({ "x-cloudscheduler": "true", "x-cloudscheduler-jobname": "daily" })).toMatchObject([
      { form: "scheduler", source: "daily", wants: [] },
    ]);
    expect(decode({ "webhook-id": "w-1" }, { type: "order.paid", data: {} })).toMatchObject([
      { form: "webhook", id: "w-1", type: "order.paid" },
    ]);
    expect(decode(json, { reactor: "recovery" })).toMatchObject([{ form: "plain", wants: ["recovery"] }]);
    expect(decode({})).toMatchObject([{ form: "plain", data: undefined, wants: [] }]);
  });

  it.each<[string, Record<string, string>, unknown]>([
    ["text that is not JSON", {}, "hello"],
    ["bytes that are not UTF-8", json, "\u{fffd}{"],
    [
      "a CloudEvent of another version",
      { "content-type": "application/cloudevents+json" },
      { ...event, specversion: "0.3" },
    ],
    ["a CloudEvent without an id", { "content-type": "application/cloudevents+json" }, { ...event, id: undefined }],
    ["a CloudEvent that is a list", { "content-type": "application/cloudevents+json" }, []],
    ["a batch that is no list", { "content-type": "application/cloudevents-batch+json" }, event],
    [
      "a batch without end",
      { "content-type": "application/cloudevents-batch+json" },
      Array.from({ length: 1_001 }, () => event),
    ],
    [
      "a header that is not percent-encoded",
      { "ce-specversion": "1.0", "ce-id": "%E0%A4%A", "ce-source": "s", "ce-type": "t" },
      "",
    ],
    [
      "data that only claims to be JSON",
      { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", ...json },
      "{",
    ],
    ["an empty webhook", { "webhook-id": "w" }, ""],
  ])("%s is unreadable", (_, headers, body) => {
    expect(() => decode(headers, body)).toThrow(Unreadable);
  });

  it("names of reactors that are not text name none", () => {
    for (const reactor of [5, null, ["outbox"], { a: 1 }, "", " , "])
      expect(decode(json, { reactor })[0]!.wants).toEqual([]);
  });
});
