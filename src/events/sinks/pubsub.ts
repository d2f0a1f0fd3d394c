import { createHash } from "node:crypto";
import type { TapeEvent } from "../event.ts";
import type { Delivery, Sink } from "../sink.ts";
import { deliveryOf } from "./http.ts";
import { type PubsubTopicOptions, pubsubTopic } from "./pubsub-topic.ts";
import { attributesOf } from "./wire.ts";

/** Options of {@link pubsubSink}. */
export interface PubsubSinkOptions extends PubsubTopicOptions {}

/** Pub/Sub's bounds for ordering keys and for values of attributes. */
const maxTextBytes = 1_024;
const maxShown = 500;

/**
 * Publishes events to a topic of Google Cloud Pub/Sub, through its REST interface: attributes of CloudEvents as `ce-`
 * attributes, the root run as ordering key. Subscribers drop repeats by `ce-id`.
 *
 * @example
 * const sink = pubsubSink({ topic: "projects/p/topics/tape-events" });
 */
export function pubsubSink(options: PubsubSinkOptions): Sink {
  const publish = pubsubTopic("pubsubSink", options);
  return {
    label: `pubsub ${options.topic}`,
    // Pub/Sub takes 10 MB in one call, in which base64 makes four bytes of three.
    limits: { events: 1_000, bytes: 6_500_000 },
    async send(events, { signal }): Promise<Delivery[]> {
      const response = await publish(events.map(messageOf), signal);
      const text = await response.text();
      // All or nothing: of a refused batch, the lane sends each event alone.
      const delivery = response.ok ? "ok" : verdictOf(response, text);
      return events.map(() => delivery);
    },
  };
}

function messageOf(event: TapeEvent): object {
  const fits = ([, value]: readonly [string, string]): boolean => Buffer.byteLength(value) <= maxTextBytes;
  const attributes = attributesOf(event)
    .filter(fits)
    .map(([name, value]) => [`ce-${name}`, value] as const);
  return {
    data: Buffer.from(JSON.stringify(event.data)).toString("base64"),
    attributes: { "content-type": "application/json", ...Object.fromEntries(attributes) },
    orderingKey: orderingKeyOf(event.partitionkey),
  };
}

/** A run's id may be longer than a key in bytes; its hash keeps the order just as well. */
const orderingKeyOf = (key: string): string =>
  Buffer.byteLength(key) <= maxTextBytes ? key : createHash("sha256").update(key).digest("hex");

function verdictOf({ status, headers }: Response, text: string): Delivery {
  const seconds = Number(headers.get("retry-after"));
  const afterMs = seconds > 0 ? seconds * 1_000 : undefined;
  return deliveryOf(status, `Pub/Sub answered ${status}: ${text.slice(0, maxShown)}`, afterMs);
}
