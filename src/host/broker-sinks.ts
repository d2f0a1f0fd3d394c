import { defined } from "../base/defined.ts";
import type { SinkSettings } from "../config/events-schema.ts";
import type { Sink } from "../events/sink.ts";
import { kafkaSink, loadKafka } from "../events/sinks/kafka.ts";
import { loadNats, natsSink } from "../events/sinks/nats.ts";
import { pubsubSink } from "../events/sinks/pubsub.ts";
import { loadRedis, redisSink } from "../events/sinks/redis.ts";

/** The settings without which a sink of a broker cannot exist. */
export const brokerNeeds = { nats: "servers", redis: "url", kafka: "servers", pubsub: "topic" } as const;

/** A kind of sink that is a broker. */
export type BrokerKind = keyof typeof brokerNeeds;

export const isBroker = (kind: string | undefined): kind is BrokerKind =>
  kind !== undefined && Object.hasOwn(brokerNeeds, kind);

/** Fails if the client of the broker is not installed: at the start, not with the first event. */
export async function assertClient(kind: SinkSettings["kind"]): Promise<void> {
  if (kind === "nats") await loadNats();
  if (kind === "redis") await loadRedis();
  if (kind === "kafka") await loadKafka();
}

/** A sink that `tape.events.sinks` describes. What {@link brokerNeeds} names is there. */
export function brokerSink(kind: BrokerKind, settings: SinkSettings): Sink {
  const { url = "", servers = [], topic, prefix, stream, user, password } = settings;
  switch (kind) {
    case "nats":
      return natsSink({
        servers,
        connect: defined({ token: settings.token, user, pass: password }),
        ...defined({ prefix }),
      });
    case "redis": {
      const { per_journal: perJournal, max_length: maxLength } = settings;
      return redisSink({ url, ...defined({ stream, perJournal, maxLength }) });
    }
    case "kafka": {
      const sasl = user === undefined ? undefined : { mechanism: settings.sasl ?? "PLAIN", username: user, password };
      const tls = settings.tls === true ? {} : undefined;
      return kafkaSink({ brokers: servers, connect: defined({ sasl, tls }), ...defined({ topic }) });
    }
    case "pubsub":
      return pubsubSink({ topic: topic ?? "", ...defined({ endpoint: settings.endpoint }) });
  }
}
