import { createHash } from "node:crypto";
import { type Clock, systemClock } from "../base/clock.ts";
import { type Log, logOf } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { TapeError } from "../model/errors.ts";
import { assertKnownKeys, shown } from "../sdk/validate.ts";
import type { Alarms } from "./alarms.ts";

/** What alarms need of a JetStream client: `jetstream(connection)` of `@nats-io/jetstream` has it. */
export interface NatsPublisher {
  /** Publishes a message that the stream delivers at a time. */
  publish(
    subject: string,
    payload: string,
    options: { readonly schedule: { specification: Date; target: string } },
  ): Promise<unknown>;
}

/** Messages of a consumer of `@nats-io/jetstream`. */
export type NatsMessages<M = object> = AsyncIterable<M & { ack(): void; nak(afterMs?: number): void }> & {
  close(): Promise<unknown>;
};

/** What {@link runSweeps} needs of a consumer of `@nats-io/jetstream`. */
export interface NatsConsumer {
  /** Delivers messages until it is closed. */
  consume(options: { max_messages: number }): Promise<NatsMessages>;
}

/** A JetStream client, and the names of its subjects. */
export interface NatsAlarmsOptions {
  readonly jetstream: NatsPublisher;
  /** Starts the names of subjects. Default `tape`. */
  readonly prefix?: string;
  readonly clock?: Clock;
}

/** A server keeps schedules in its stream, however far ahead. */
const furthestMs = 365 * 86_400_000;
const defaultPrefix = "tape";

const subjectOf = (prefix: string, what: "set" | "fired", tenant: string): string =>
  `${prefix}.alarms.${what}.${createHash("sha256").update(tenant).digest("hex").slice(0, 16)}`;

/**
 * The stream of alarms, for `manager.streams.add`. Needs a NATS server of version 2.12 or newer.
 *
 * @example
 * const stream = natsAlarmStream(); // for `jsm.streams.add(stream)`
 */
export function natsAlarmStream(prefix: string = defaultPrefix): {
  name: string;
  subjects: string[];
  allow_msg_schedules: true;
  max_msgs_per_subject: number;
} {
  // One fired alarm of a tenant is as good as ten: each means "check the agenda now".
  const bounds = { allow_msg_schedules: true, max_msgs_per_subject: 1 } as const;
  return { name: `${prefix}-alarms`, subjects: [`${prefix}.alarms.>`], ...bounds };
}

/**
 * The consumer of one tenant's alarms, for `manager.consumers.add(stream, …)`.
 *
 * @example
 * const consumer = natsAlarmConsumer("acme"); // for `jsm.consumers.add(stream, consumer)`
 */
export function natsAlarmConsumer(
  tenant: string,
  prefix: string = defaultPrefix,
): { durable_name: string; filter_subject: string; ack_policy: "explicit"; ack_wait: number } {
  const filter = subjectOf(prefix, "fired", tenant);
  // Longer than a sweep: an alarm that is not confirmed by then is delivered again.
  return {
    durable_name: `sweep-${filter.split(".").at(-1)}`,
    filter_subject: filter,
    ack_policy: "explicit",
    ack_wait: 60e9,
  };
}

/**
 * Alarms as scheduled messages of NATS. The subject has the name, so that an alarm never replaces another one.
 *
 * The server confirms a message before it is on the disk, unless it runs with `sync_interval: always`.
 *
 * @example
 * const alarms = natsAlarms({ jetstream: jetstream(await connect()) });
 */
export function natsAlarms(options: NatsAlarmsOptions): Alarms {
  assertKnownKeys("natsAlarms", options, ["jetstream", "prefix", "clock"]);
  const { jetstream, prefix = defaultPrefix, clock = systemClock } = options;
  if (typeof jetstream?.publish !== "function") {
    const message = `natsAlarms: jetstream is what jetstream(connection) returns, not ${shown(jetstream)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "jetstream" });
  }
  return {
    furthestMs,
    async set({ tenant, inMs, name }) {
      const specification = new Date(clock.wall() + inMs);
      const target = subjectOf(prefix, "fired", tenant);
      const body = JSON.stringify({ alarm: name, tenant });
      await jetstream.publish(`${subjectOf(prefix, "set", tenant)}.${name}`, body, {
        schedule: { specification, target },
      });
    },
  };
}

/** Stops the sweeps of a consumer. */
export interface RunningSweeps {
  /** Stops after the sweep that is under way. */
  stop(): Promise<void>;
}

/** Work that failed is repeated after this time. */
const repeatMs = 1_000;

/**
 * Sweeps for each alarm that the consumer delivers. It confirms an alarm once its sweep has succeeded.
 *
 * @example
 * const sweeps = await runSweeps(consumer, app);
 * await sweeps.stop();
 */
export async function runSweeps(
  consumer: NatsConsumer,
  app: { sweep(): Promise<unknown> },
  log: Log = logOf("warn"),
): Promise<RunningSweeps> {
  return forEachMessage(consumer, { event: "alarm.sweep_failed", log }, () => app.sweep());
}

/** Works on one message after the other. A message is confirmed once its work has succeeded. */
export async function forEachMessage<M>(
  consumer: { consume(options: { max_messages: number }): Promise<NatsMessages<M>> },
  { event, log }: { readonly event: string; readonly log: Log },
  work: (message: M) => Promise<unknown>,
): Promise<RunningSweeps> {
  const messages = await consumer.consume({ max_messages: 1 });
  const done = (async (): Promise<void> => {
    for await (const message of messages) {
      try {
        await work(message);
        message.ack();
      } catch (error) {
        log("warn", event, { ...errorFields(error) });
        message.nak(repeatMs);
      }
    }
  })();
  return {
    async stop() {
      await messages.close();
      await done;
    },
  };
}
