import { loadPeer } from "../../model/peer.ts";
import type { TapeEvent } from "../event.ts";
import type { Delivery, Sink } from "../sink.ts";
import { exactlyOne, nameOption } from "./options.ts";
import { SharedClient } from "./shared-client.ts";
import { unlessAborted } from "./unless-aborted.ts";
import { attributesOf } from "./wire.ts";

/** A message as `@platformatic/kafka` sends it. */
export interface KafkaMessage {
  /** The topic. */
  readonly topic: string;
  /** The lane of the event, so that its order is kept. */
  readonly key: string;
  /** The event as JSON. */
  readonly value: string;
  /** The attributes of the event. */
  readonly headers: Record<string, string>;
}

/** What the sink uses of a producer of `@platformatic/kafka` whose serializers take strings. */
export interface KafkaProducer {
  /** Sends messages and waits for acknowledgements. */
  send(options: { readonly messages: KafkaMessage[]; readonly acks: number }): Promise<unknown>;
}

/** Options of {@link kafkaSink}. */
export interface KafkaSinkOptions {
  /** Such as `["127.0.0.1:9092"]`. */
  readonly brokers?: readonly string[];
  /** Further options of the client's producer: `sasl`, `tls`, `clientId`. */
  readonly connect?: Readonly<Record<string, unknown>>;
  /** A producer of your own in place of `brokers`. The sink does not close it. */
  readonly producer?: KafkaProducer;
  /** `tape` unless you choose another. It has to exist. */
  readonly topic?: string;
}

interface OwnProducer extends KafkaProducer {
  close(force?: boolean): Promise<void>;
}
interface KafkaPackage {
  readonly Producer: new (options: Readonly<Record<string, unknown>>) => OwnProducer;
  readonly stringSerializers: unknown;
}

const install = ["@platformatic/kafka@^2.12.0"] as const;
const acksOfAll = -1;
/** MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_RECORD: about one event, not about the broker. */
const refusals = new Set([10, 18, 87]);

/**
 * Produces events to a Kafka topic as CloudEvents in binary mode: the data as value, attributes as `ce_` headers, the
 * root run as key, so that a run stays in one partition. Acknowledged by all replicas in sync. Kafka drops no repeats.
 *
 * Proven against a mock of the protocol only, never against a Kafka server.
 *
 * @example
 * const sink = kafkaSink({ brokers: ["127.0.0.1:9092"], topic: "tape" });
 */
export function kafkaSink(options: KafkaSinkOptions): Sink {
  exactlyOne("kafkaSink", options, "brokers", "producer");
  const topic = nameOption("kafkaSink", "topic", options.topic ?? "tape", /^[\w.-]+$/);
  const shared = new SharedClient(() => connected(options));
  return {
    label: `kafka ${topic}`,
    // A broker takes 1 MiB in one batch of records unless it is set up otherwise.
    limits: { events: 500, bytes: 900_000 },
    async send(events, { signal }): Promise<Delivery[]> {
      const producer = options.producer ?? (await shared.get());
      const messages = events.map((event) => messageOf(topic, event));
      try {
        await unlessAborted(signal, () => producer.send({ messages, acks: acksOfAll }));
        return events.map(() => "ok");
      } catch (error) {
        if (!isRefusal(error)) throw error;
        // One of them is to blame: the lane sends each alone to find it.
        return events.map(() => ({ never: error, code: "refused" }));
      }
    },
    close: () => shared.close((own) => own.close(true)),
  };
}

/** The client, loaded on first use. */
export const loadKafka = (): Promise<KafkaPackage> =>
  loadPeer<KafkaPackage>("@platformatic/kafka", "kafkaSink", install);

async function connected({ brokers, connect }: KafkaSinkOptions): Promise<OwnProducer> {
  const { Producer, stringSerializers } = await loadKafka();
  return new Producer({
    ...{ clientId: "tape", retries: 1, ...connect },
    ...{ bootstrapBrokers: [...brokers!], serializers: stringSerializers },
  });
}

function messageOf(topic: string, event: TapeEvent): KafkaMessage {
  const headers = attributesOf(event).map(([name, value]) => [`ce_${name}`, value] as const);
  return {
    ...{ topic, key: event.partitionkey, value: JSON.stringify(event.data) },
    headers: { "content-type": "application/json", ...Object.fromEntries(headers) },
  };
}

/** The client nests the broker's answers in aggregates. */
function isRefusal(error: unknown): boolean {
  const { apiCode, errors, cause } = error as { apiCode?: number; errors?: readonly unknown[]; cause?: unknown };
  if (apiCode !== undefined && refusals.has(apiCode)) return true;
  return (errors ?? []).some(isRefusal) || (cause !== undefined && isRefusal(cause));
}
