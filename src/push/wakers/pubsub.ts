import { systemClock } from "../../base/clock.ts";
import { type PubsubTopicOptions, pubsubTopic } from "../../events/sinks/pubsub-topic.ts";
import type { Waker } from "../../reactor/remote.ts";
import { assertKnownKeys } from "../../sdk/validate.ts";

/** The topic of wake-ups, and how to reach it. */
export interface PubsubWakerOptions extends PubsubTopicOptions {}

const requestMs = 5_000;
/** Pub/Sub takes that many messages in one call. */
const maxMessages = 1_000;

/**
 * Wakes handlers by messages of a topic of Google Cloud Pub/Sub. The attribute `reactor` has the reactor's name, by which
 * the push subscription of each handler filters: `attributes.reactor = "outbox"`.
 *
 * @example
 * const waker = pubsubWaker({ topic: "projects/p/topics/tape-wakeups" });
 */
export function pubsubWaker(options: PubsubWakerOptions): Waker {
  assertKnownKeys("pubsubWaker", options, ["topic", "endpoint", "token", "clock"]);
  const publish = pubsubTopic("pubsubWaker", options);
  const { clock = systemClock } = options;
  return {
    label: "pubsub",
    async wake(reactor, requests) {
      const data = Buffer.from(JSON.stringify({ reactor })).toString("base64");
      const length = Math.min(requests, maxMessages);
      const messages = Array.from({ length }, () => ({ data, attributes: { reactor } }));
      const late = new AbortController();
      const cancel = clock.after(requestMs, () => late.abort(new Error(`no response within ${requestMs} ms`)));
      try {
        const response = await publish(messages, late.signal);
        if (response.ok) return void (await response.body?.cancel());
        throw new Error(`Pub/Sub answered ${response.status}: ${(await response.text()).slice(0, 500)}`);
      } finally {
        cancel();
      }
    },
  };
}
