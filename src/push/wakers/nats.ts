import { createHash } from "node:crypto";
import { forEachMessage, type NatsMessages, type RunningSweeps } from "../../alarm/nats.ts";
import { type Log, logOf } from "../../base/log.ts";
import { loadNats } from "../../events/sinks/nats.ts";
import { exactlyOne, nameOption } from "../../events/sinks/options.ts";
import { SharedClient } from "../../events/sinks/shared-client.ts";
import type { Waker } from "../../reactor/remote.ts";
import { assertKnownKeys } from "../../sdk/validate.ts";
import type { Handler } from "../request.ts";

/** What the waker needs of a JetStream client: `jetstream(connection)` of `@nats-io/jetstream` has it. */
export interface WakeUpPublisher {
  /** Publishes a message. */
  publish(subject: string, payload: string, options: { readonly timeout: number }): Promise<unknown>;
}

/** A JetStream client or the addresses of its servers, and the names of its subjects. */
export interface NatsWakerOptions {
  /** Addresses of one server or cluster, such as `nats://127.0.0.1:4222`. Default: the client. */
  readonly servers?: string | readonly string[];
  /** Further options of the client's `connect`: `token`, `user`, `pass`, `tls`. */
  readonly connect?: Readonly<Record<string, unknown>>;
  /** A client of your own in place of `servers`. The waker does not close its connection. */
  readonly jetstream?: WakeUpPublisher;
  /** Starts the names of subjects. Default `tape`. */
  readonly prefix?: string;
  /** Default `default`. */
  readonly tenant?: string;
}

const defaultPrefix = "tape";
const ackMs = 5_000;
/** More wake-ups of a reactor than this change nothing: each means "work until nothing is due". */
const maxWaiting = 10;
const maxAgeNs = 600e9;

const subjectOf = (prefix: string, tenant: string, reactor: string): string =>
  `${prefix}.wakeups.${createHash("sha256").update(tenant).digest("hex").slice(0, 16)}.${reactor}`;

/**
 * The stream of wake-ups, for `manager.streams.add`. An old wake-up is worth nothing, so it keeps them for ten minutes.
 *
 * @example
 * const stream = natsWakeUpStream(); // for `jsm.streams.add(stream)`
 */
export function natsWakeUpStream(prefix: string = defaultPrefix): {
  name: string;
  subjects: string[];
  retention: "workqueue";
  max_msgs_per_subject: number;
  max_age: number;
} {
  const bounds = { max_msgs_per_subject: maxWaiting, max_age: maxAgeNs };
  return { name: `${prefix}-wakeups`, subjects: [`${prefix}.wakeups.>`], retention: "workqueue", ...bounds };
}

/**
 * The consumer of one reactor's wake-ups, for `manager.consumers.add(stream, …)`.
 *
 * @example
 * const consumer = natsWakeUpConsumer("acme", "outbox"); // for `jsm.consumers.add(stream, consumer)`
 */
export function natsWakeUpConsumer(
  tenant: string,
  reactor: string,
  prefix: string = defaultPrefix,
): { durable_name: string; filter_subject: string; ack_policy: "explicit"; ack_wait: number } {
  const filter = subjectOf(prefix, tenant, reactor);
  // Longer than `within` of a handler: a wake-up that is not confirmed by then is delivered again.
  return {
    durable_name: filter.split(".").slice(-2).join("-"),
    filter_subject: filter,
    ack_policy: "explicit",
    ack_wait: 65e9,
  };
}

/**
 * Wakes handlers by messages of a NATS stream. NATS calls no URL: {@link runWakeUps} passes its messages to a handler,
 * in a process that may stop while no message waits.
 *
 * @example
 * const waker = natsWaker({ servers: "nats://127.0.0.1:4222" });
 */
export function natsWaker(options: NatsWakerOptions): Waker {
  assertKnownKeys("natsWaker", options, ["servers", "connect", "jetstream", "prefix", "tenant"]);
  exactlyOne("natsWaker", options, "servers", "jetstream");
  const { tenant = "default", jetstream } = options;
  const prefix = nameOption("natsWaker", "prefix", options.prefix ?? defaultPrefix, /^[\w-]+(\.[\w-]+)*$/);
  const own = jetstream === undefined ? jetstreamOf("natsWaker", options) : undefined;
  const publisher: WakeUpPublisher = jetstream ?? own!;
  return {
    label: "nats",
    async wake(reactor, requests) {
      const send = () =>
        publisher.publish(subjectOf(prefix, tenant, reactor), JSON.stringify({ reactor }), { timeout: ackMs });
      await Promise.all(Array.from({ length: Math.min(requests, maxWaiting) }, send));
    },
    async close() {
      await own?.close();
    },
  };
}

/** A JetStream client that connects on first use. */
export function jetstreamOf(
  neededBy: string,
  { servers, connect }: Pick<NatsWakerOptions, "servers" | "connect">,
): { publish(subject: string, payload: string, options: object): Promise<unknown>; close(): Promise<void> } {
  const open = async () => {
    const nats = await loadNats(neededBy);
    const connection = await nats.connect({ maxReconnectAttempts: -1, ...connect, servers });
    return { connection, publisher: nats.jetstream(connection) as Pick<ReturnType<typeof jetstreamOf>, "publish"> };
  };
  const shared = new SharedClient(open, ({ connection }) => connection.isClosed());
  return {
    publish: async (subject, payload, options) => (await shared.get()).publisher.publish(subject, payload, options),
    close: () => shared.close(({ connection }) => connection.close()),
  };
}

/**
 * Passes each wake-up that the consumer delivers to a handler of `pushHandler`, whose `verify` is `unverified("NATS
 * checks its clients")`. It confirms a wake-up once the handler has answered with 2xx.
 *
 * @example
 * const wakeUps = await runWakeUps(consumer, handler);
 * await wakeUps.stop();
 */
export function runWakeUps(
  consumer: { consume(options: { max_messages: number }): Promise<NatsMessages<{ readonly data: Uint8Array }>> },
  handler: Handler,
  log: Log = logOf("warn"),
): Promise<RunningSweeps> {
  return forEachMessage(consumer, { event: "waker.failed", log }, async ({ data }) => {
    const headers = { "content-type": "application/json" };
    const body = new Uint8Array(data);
    const { status } = await handler(new Request("http://wake-up.invalid/", { method: "POST", headers, body }));
    if (status < 200 || status > 299) throw new Error(`the handler answered ${status}`);
  });
}
